package io.lastword.transport;

import io.lastword.Attempt;
import io.lastword.Codes;
import io.lastword.Completed;
import io.lastword.Timer;
import io.lastword.core.Classifier;
import io.lastword.core.Deadline;
import io.lastword.core.ResponseHead;
import io.lastword.core.RetryDecision;
import io.lastword.core.StreamTracker;
import io.lastword.core.StreamTracker.WireEnd;
import io.lastword.errors.ErrorInfo;
import io.lastword.errors.LastwordException;
import java.io.IOException;
import java.net.URI;
import java.net.http.HttpConnectTimeoutException;
import java.time.Duration;
import java.time.Instant;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.concurrent.ThreadLocalRandom;
import java.util.zip.ZipException;
import org.jspecify.annotations.Nullable;

/**
 * One call over all its attempts: what was met, whether to go on, and the last word. Not for
 * several threads.
 */
final class Call {

  /** One try. */
  interface Step<T extends @Nullable Object> {
    T run() throws Failure;
  }

  private final Prepared request;
  private final Guard guard;
  private final CallRules rules;
  private final List<Attempt> attempts = new ArrayList<>();
  private volatile StreamTracker tracker; // of the attempt at hand; others may ask what it says
  private volatile @Nullable ResponseHead answer;
  private String server = ""; // host and port that the attempt at hand goes to
  private boolean delivered;
  private Instant startedAt = Instant.EPOCH;
  private long started;
  private RetryDecision.@Nullable Retry retry;
  private @Nullable String notRetried;
  private boolean noted = true; // whether the attempt at hand has been written down

  /** A call that has not begun. */
  Call(Prepared request, Guard guard, CallRules rules) {
    this.request = request;
    this.guard = guard;
    this.rules = rules;
    this.tracker = new StreamTracker(request.choices(), rules.profile());
  }

  Prepared request() {
    return request;
  }

  Guard guard() {
    return guard;
  }

  StreamTracker tracker() {
    return tracker;
  }

  /** The head that {@link Wire#send} has noted. */
  ResponseHead answer() {
    return Objects.requireNonNull(answer, "no answer has come");
  }

  void goesTo(URI url) {
    server = url.getHost() + (url.getPort() < 0 ? "" : ":" + url.getPort());
  }

  void answered(ResponseHead head) {
    answer = head;
  }

  boolean delivered() {
    return delivered;
  }

  /** A chunk has reached the caller: the commit point (RTY-1). */
  void deliver() {
    delivered = true;
  }

  /** A new attempt; gives its headers (HDR-1 to HDR-3). */
  Map<String, String> beginAttempt() {
    guard.attempt();
    startedAt = Instant.now();
    started = System.nanoTime();
    noted = false;
    answer = null;
    tracker = new StreamTracker(request.choices(), rules.profile());
    Map<String, String> headers = new LinkedHashMap<>(request.headers());
    headers.put("x-request-attempt", String.valueOf(request.attempt() + attempts.size()));
    Duration left = guard.deadline().remaining(System.nanoTime());
    if (left != null) {
      headers.put(
          "request-timeout-ms", String.valueOf(Math.max(1, Math.round(left.toNanos() / 1e6))));
    }
    return headers;
  }

  /** The server's word on the request id, else ours. */
  String requestId() {
    ResponseHead head = answer;
    String theirs = head == null ? null : Classifier.requestIdOf(head.headers());
    return theirs != null ? theirs : request.requestId();
  }

  /**
   * Whether the head of the answer has said no already: a body that breaks off then takes nothing
   * from it.
   */
  boolean refused() {
    return !answer().ok() && !guard.cancelled() && guard.fired() == null;
  }

  /** The error that a whole answer is, null if it is none. */
  @Nullable Failure refusal(byte[] body) {
    ErrorInfo info =
        Classifier.response(answer().status(), answer().headers(), body, Instant.now());
    return info == null ? null : new Failure(info, null);
  }

  /** The error for an answer that cannot be read. */
  Failure malformed(String what, byte[] body) {
    return new Failure(answer().malformed(what, body), null);
  }

  /** The error for a wait that this side ended. */
  Failure stopped() {
    Timer timer = guard.fired();
    if (guard.cancelled() || timer == null) {
      return cancelled(
          guard.interrupted()
              ? "the thread that waited for the answer was interrupted"
              : "the request was closed from this side while it was waiting");
    }
    return new Failure(Deadline.fired(timer, request.timeouts()), null);
  }

  /** The error for what the JDK's client threw. */
  Failure broken(IOException error) {
    if (error instanceof HttpConnectTimeoutException) {
      guard.connectTimerFired();
    }
    if (guard.cancelled() || guard.fired() != null) {
      return stopped();
    }
    ResponseHead head = answer;
    if (head == null) {
      return new Failure(JdkErrors.unanswered(error, server), error);
    }
    if (error instanceof ZipException) {
      return new Failure(head.malformed(JdkErrors.undecoded(error), new byte[0]), error);
    }
    ErrorInfo info = tracker.end(JdkErrors.wireEnd(error), false);
    return new Failure(
        Objects.requireNonNull(info, "only a clean end can complete an answer"), error);
  }

  /** The last word on a stream: null if it completed. */
  @Nullable Failure ended(WireEnd wire, boolean pending) {
    ErrorInfo info = tracker.end(wire, pending);
    return info == null ? null : new Failure(info, null);
  }

  /** The error for a call that this side ended. */
  Failure cancelled(String why) {
    return new Failure(Classifier.error(Codes.CANCELLED, why).build(), null);
  }

  /** Try until it succeeds, or until the rules say that trying again is of no use. */
  <T extends @Nullable Object> T retrying(Step<T> step) throws Failure {
    while (true) {
      try {
        return step.run();
      } catch (Failure failure) {
        note(failure);
        RetryDecision decision = decide(failure);
        if (decision instanceof RetryDecision.GiveUp giveUp) {
          retry = null;
          notRetried = giveUp.reason();
          throw failure;
        }
        RetryDecision.Retry again = (RetryDecision.Retry) decision;
        retry = again;
        guard.sleep(again.delay());
        if (guard.cancelled()) {
          throw stopped();
        }
      }
    }
  }

  /** Write down what the attempt at hand met, once; null: it succeeded. */
  void note(@Nullable Failure failure) {
    if (noted) {
      return;
    }
    noted = true;
    if (failure == null) {
      rules.budget().refund(retry == null ? 0 : retry.cost());
    }
    ResponseHead head = answer;
    attempts.add(
        new Attempt(
            attempts.size() + 1,
            failure == null ? null : failure.info().code(),
            head == null ? null : (Integer) head.status(),
            failure == null ? "" : failure.info().message(),
            startedAt,
            Duration.ofNanos(System.nanoTime() - started),
            retry == null ? Duration.ZERO : retry.delay(),
            guard.fired()));
  }

  /** What the caller gets thrown. */
  LastwordException thrown(Failure failure) {
    note(failure);
    ErrorInfo info = failure.info();
    if (info.requestId() == null) {
      info = info.toBuilder().requestId(requestId()).build();
    }
    return LastwordException.of(info, tracker.partial(), attempts, failure.getCause(), notRetried);
  }

  /** What the caller gets if it completed; {@code body} is that of an answer without a stream. */
  Completed completed(Map<String, @Nullable Object> body) {
    note(null);
    return new Completed(
        tracker.texts(),
        tracker.toolCalls(),
        tracker.finishReasons(),
        tracker.usage(),
        tracker.warnings(),
        requestId(),
        attempts,
        body);
  }

  private RetryDecision decide(Failure failure) {
    if (guard.cancelled()) {
      return new RetryDecision.GiveUp("the call was cancelled");
    }
    Duration left = guard.deadline().remaining(System.nanoTime());
    return RetryDecision.after(
        failure.info(),
        attempts.size(),
        delivered,
        left,
        rules.policy(),
        rules.budget(),
        ThreadLocalRandom.current()::nextDouble);
  }
}
