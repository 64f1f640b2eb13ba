package io.lastword.openai;

import com.openai.core.http.Headers;
import com.openai.core.http.HttpResponse;
import io.lastword.Codes;
import io.lastword.Origin;
import io.lastword.Partial;
import io.lastword.RetryPolicy;
import io.lastword.Timeouts;
import io.lastword.Timer;
import io.lastword.core.Classifier;
import io.lastword.core.Deadline;
import io.lastword.core.ErrorBody;
import io.lastword.core.Json;
import io.lastword.core.Limits;
import io.lastword.core.ModelList;
import io.lastword.core.Registry;
import io.lastword.core.ResponseHead;
import io.lastword.core.RetryBudget;
import io.lastword.core.RetryDecision;
import io.lastword.core.StreamTracker;
import io.lastword.core.StreamTracker.WireEnd;
import io.lastword.errors.ErrorInfo;
import io.lastword.errors.LastwordException;
import io.lastword.transport.JdkErrors;
import java.time.Duration;
import java.time.Instant;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.Set;
import org.jspecify.annotations.Nullable;

/** Holds each answer against what was asked. */
final class AnswerCheck {

  private static final int BAD_GATEWAY = 502;
  // openai-java counts its attempts itself; what is asked here is whether another one can help.
  private static final RetryPolicy AS_OFTEN_AS_YOU_LIKE =
      RetryPolicy.defaults().withMaxAttempts(Integer.MAX_VALUE);

  static final String INTERRUPTED = "the thread that waited for the answer was interrupted";
  // By a timer or by somebody; such a call has the same exception wherever it was.
  private static final Set<String> ENDED_HERE =
      Set.of(
          Codes.CANCELLED,
          Codes.FIRST_TOKEN_TIMEOUT,
          Codes.GENERATION_STALLED,
          Codes.DEADLINE_EXCEEDED);

  private final Timeouts timeouts;
  private final Pumps pumps = new Pumps();

  AnswerCheck(Timeouts timeouts) {
    this.timeouts = timeouts;
  }

  /** End what is being read. */
  void close() {
    pumps.close();
  }

  /** How long the head of the answer may be waited for; null for ever. */
  @Nullable Duration patience(Asked asked) {
    return asked.stream() ? timeouts.firstToken() : null;
  }

  /**
   * The answer, if it is whole or begins well, else an error response that says what it is.
   *
   * @param began when it was asked for, by {@link System#nanoTime}
   */
  HttpResponse check(Asked asked, HttpResponse response, long began) {
    ResponseHead head = Answer.head(response.statusCode(), response.headers());
    if (asked.stream() && head.isStream()) {
      return stream(asked, response, head, began);
    }
    if (head.ok() && !asked.generates() && !asked.lists()) {
      return response; // files, audio, Responses: none of ours
    }
    Pump.Whole body = whole(asked, response, head, began);
    ErrorInfo info =
        head.ok() && (body.late() || body.broken() != null)
            ? broken(asked, body)
            : Classifier.response(head.status(), head.headers(), body.bytes(), Instant.now());
    if (info == null) {
      info = asked.stream() ? head.noStream(body.bytes()) : unreadable(asked, body.bytes(), head);
    }
    return info == null
        ? new Answer(head.status(), response.headers(), body.bytes())
        : refused(asked, head, info);
  }

  private HttpResponse stream(Asked asked, HttpResponse response, ResponseHead head, long began) {
    CheckedStream stream = new CheckedStream(asked, pumps.of(response), head, timeouts, began);
    ErrorInfo info = stream.begin();
    if (info == null) {
      return new Answer(head.status(), response.headers(), stream);
    }
    stream.close();
    return refused(asked, head, info);
  }

  /**
   * A refusal says what it can in a short while; what else comes in place of a stream is waited for
   * as for its first token.
   */
  private Pump.Whole whole(Asked asked, HttpResponse response, ResponseHead head, long began) {
    Duration patience = patience(asked);
    long nanos = Deadline.NEVER;
    if (!head.ok()) {
      nanos = Limits.REFUSAL_TIME.toNanos();
    } else if (patience != null) {
      nanos = patience.toNanos() - (System.nanoTime() - began);
    }
    try {
      return pumps.of(response).all(head.ok() ? Limits.ANSWER : Limits.REFUSAL, nanos);
    } catch (InterruptedException e) {
      Thread.currentThread().interrupt();
      throw cancelled(asked, INTERRUPTED);
    }
  }

  private ErrorInfo broken(Asked asked, Pump.Whole body) {
    if (body.late()) {
      return Deadline.fired(Timer.FIRST_TOKEN, timeouts);
    }
    ErrorInfo known = LastwordErrors.ofBody(body.broken());
    ErrorInfo cut =
        new StreamTracker(asked.choices(), null).end(JdkErrors.wireEnd(body.broken()), false);
    return known != null ? known : Objects.requireNonNull(cut, "nothing was whole");
  }

  private static @Nullable ErrorInfo unreadable(Asked asked, byte[] body, ResponseHead head) {
    if (body.length > Limits.ANSWER) {
      return head.malformed("the answer is larger than " + Limits.ANSWER + " bytes", new byte[0]);
    }
    Object parsed;
    try {
      parsed = Json.parse(Classifier.text(body));
    } catch (Json.NotJsonException e) {
      return head.noJson(body);
    }
    if (asked.lists()) {
      String wrong = ModelList.wrong(parsed);
      return wrong == null ? null : head.malformed(wrong, body);
    }
    if (!asked.generates()) {
      return null;
    }
    StreamTracker tracker = new StreamTracker(asked.choices(), null);
    tracker.acceptBody(parsed);
    return tracker.end(WireEnd.COMPLETE, false);
  }

  /** Somebody on this side ended the call: nothing that openai-java should try again. */
  static LastwordOpenAIException cancelled(Asked asked, String why) {
    return thrown(asked, Classifier.error(Codes.CANCELLED, why).build());
  }

  private static LastwordOpenAIException thrown(Asked asked, ErrorInfo given) {
    ErrorInfo info = named(asked, given);
    return new LastwordOpenAIException(
        LastwordException.of(info, Partial.NOTHING, List.of(), null));
  }

  private static ErrorInfo named(Asked asked, ErrorInfo info) {
    return info.requestId() != null ? info : info.toBuilder().requestId(asked.requestId()).build();
  }

  /** A stream of which no head has come in time. */
  LastwordOpenAIException silent(Asked asked) {
    return thrown(asked, Deadline.fired(Timer.FIRST_TOKEN, timeouts));
  }

  /** What openai-java is to be told where no head has come. */
  HttpResponse refused(Asked asked, ErrorInfo info) {
    return refused(asked, new ResponseHead(200, Map.of()), info);
  }

  /**
   * The response that openai-java makes the right exception of, and whose headers tell its loop
   * whether to go on.
   */
  private static HttpResponse refused(Asked asked, ResponseHead head, ErrorInfo given) {
    ErrorInfo info = named(asked, given);
    if (info.origin() == Origin.CLIENT && ENDED_HERE.contains(info.code())) {
      throw thrown(asked, info);
    }
    RetryDecision decision =
        RetryDecision.after(
            info,
            asked.attempt(),
            false,
            null,
            AS_OFTEN_AS_YOU_LIKE,
            new RetryBudget(null),
            () -> 0);
    Headers.Builder all = Headers.builder();
    head.headers().forEach(all::put);
    all.removeAll(
        Set.of(
            "content-length",
            "content-encoding",
            "transfer-encoding",
            "retry-after",
            "retry-after-ms"));
    all.replace("content-type", "application/json");
    all.replace(LastwordErrors.STATUS, LastwordErrors.real(info.status()));
    all.replace("x-should-retry", String.valueOf(decision instanceof RetryDecision.Retry));
    Duration hint = info.retryAfter();
    if (hint != null && decision instanceof RetryDecision.Retry) {
      all.put("retry-after-ms", String.valueOf(ErrorBody.millis(hint)));
    }
    return new Answer(head.ok() ? statusOf(info) : head.status(), all.build(), ErrorBody.of(info));
  }

  private static int statusOf(ErrorInfo info) {
    Registry.CodeInfo known = Registry.CODES.get(info.code());
    return known == null || known.httpStatus() == 0 ? BAD_GATEWAY : known.httpStatus();
  }
}
