package io.lastword.openai;

import com.openai.core.http.Headers;
import com.openai.core.http.HttpResponse;
import io.lastword.Codes;
import io.lastword.Partial;
import io.lastword.RetryPolicy;
import io.lastword.Timeouts;
import io.lastword.Timer;
import io.lastword.core.Classifier;
import io.lastword.core.Deadline;
import io.lastword.core.ErrorBody;
import io.lastword.core.Json;
import io.lastword.core.Registry;
import io.lastword.core.RetryBudget;
import io.lastword.core.RetryDecision;
import io.lastword.core.StreamTracker;
import io.lastword.core.StreamTracker.WireEnd;
import io.lastword.errors.ErrorInfo;
import io.lastword.errors.LastwordException;
import java.io.IOException;
import java.time.Duration;
import java.time.Instant;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.TreeMap;
import java.util.concurrent.Executor;
import org.jspecify.annotations.Nullable;

/**
 * Holds each answer against what was asked. As an executor it runs work on daemon threads of its
 * own.
 */
final class Checking implements Executor {

  private static final int MAX_ERROR_BODY = 1 << 20;
  private static final int MAX_ANSWER = 256 * 1024 * 1024;
  private static final int BAD_GATEWAY = 502;
  // openai-java counts its attempts itself; what is asked here is whether another one can help.
  private static final RetryPolicy AS_OFTEN_AS_YOU_LIKE =
      RetryPolicy.defaults().withMaxAttempts(Integer.MAX_VALUE);

  private final Timeouts timeouts;

  Checking(Timeouts timeouts) {
    this.timeouts = timeouts;
  }

  @Override
  public void execute(Runnable work) {
    Thread thread = new Thread(work, "lastword-openai");
    thread.setDaemon(true);
    thread.start();
  }

  /** How long the head of the answer may be waited for; null for ever. */
  @Nullable Duration patience(Asked asked) {
    return asked.stream() ? timeouts.firstToken() : null;
  }

  /** The answer, if it is whole or begins well, else an error response that says what it is. */
  HttpResponse check(Asked asked, HttpResponse response, long began) {
    Map<String, String> headers = lowerCase(response.headers());
    int status = response.statusCode();
    boolean ok = 200 <= status && status < 300;
    String type =
        headers
            .getOrDefault("content-type", "")
            .split("[;,]", 2)[0]
            .strip()
            .toLowerCase(Locale.ROOT);
    if (ok
        && asked.generates()
        && asked.stream()
        && (type.isEmpty() || type.equals("text/event-stream"))) {
      return stream(asked, response, headers, began);
    }
    if (ok && !asked.generates() && !asked.lists()) {
      return response; // files, audio, Responses: none of ours
    }
    byte[] body;
    try (response) {
      body = response.body().readNBytes(ok ? MAX_ANSWER : MAX_ERROR_BODY);
    } catch (IOException e) {
      if (ok) {
        return refused(asked, headers, status, cut(e));
      }
      body = new byte[0];
    }
    ErrorInfo info = Classifier.response(status, headers, body, Instant.now());
    if (info == null) {
      info =
          asked.generates() && asked.stream()
              ? noStream(status, type)
              : unreadable(asked, body, status, type);
    }
    return info == null
        ? new Answer(status, response.headers(), body)
        : refused(asked, headers, status, info);
  }

  private HttpResponse stream(
      Asked asked, HttpResponse response, Map<String, String> headers, long began) {
    StreamTracker tracker = new StreamTracker(asked.choices(), null);
    CheckedStream stream =
        new CheckedStream(response, tracker, timeouts, asked.requestId(), headers, began);
    ErrorInfo info = stream.begin();
    if (info == null) {
      return new Answer(response.statusCode(), response.headers(), stream);
    }
    stream.close();
    return refused(asked, headers, response.statusCode(), info);
  }

  private static @Nullable ErrorInfo unreadable(Asked asked, byte[] body, int status, String type) {
    Object parsed;
    try {
      parsed = Json.parse(Classifier.text(body));
    } catch (Json.NotJsonException e) {
      String what =
          "HTTP "
              + status
              + " with a body that is no JSON ("
              + (type.isEmpty() ? "no content type" : type)
              + ")";
      return Classifier.error(Codes.MALFORMED_RESPONSE, what).raw(Classifier.raw(body)).build();
    }
    if (!asked.generates()) {
      return null;
    }
    StreamTracker tracker = new StreamTracker(asked.choices(), null);
    tracker.acceptBody(parsed);
    return tracker.end(WireEnd.COMPLETE, false);
  }

  private static ErrorInfo noStream(int status, String type) {
    String what =
        "HTTP "
            + status
            + " with the content type '"
            + type
            + "' where text/event-stream was expected";
    return Classifier.error(Codes.MALFORMED_RESPONSE, what).build();
  }

  private static ErrorInfo cut(IOException error) {
    if (error.getCause() instanceof LastwordException known) {
      return known.info();
    }
    String what = "the connection closed in the middle of the body (" + error.getMessage() + ")";
    return Classifier.error(Codes.STREAM_INCOMPLETE, what).build();
  }

  /** The contract's exception for a call that this side ended. */
  static LastwordException cancelled(String why, Asked asked) {
    ErrorInfo info = Classifier.error(Codes.CANCELLED, why).requestId(asked.requestId()).build();
    return LastwordException.of(info, Partial.NOTHING, List.of(), null);
  }

  /** What openai-java is to be told of a stream of which no head has come in time. */
  HttpResponse silent(Asked asked) {
    return refused(asked, Deadline.fired(Timer.FIRST_TOKEN, timeouts));
  }

  /** What openai-java is to be told where no head has come. */
  HttpResponse refused(Asked asked, ErrorInfo info) {
    return refused(asked, Map.of(), 200, info);
  }

  /**
   * The response that openai-java makes the right exception of, and whose headers tell its loop
   * whether to go on.
   */
  private static HttpResponse refused(
      Asked asked, Map<String, String> headers, int status, ErrorInfo given) {
    ErrorInfo info =
        given.requestId() != null ? given : given.toBuilder().requestId(asked.requestId()).build();
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
    headers.forEach(all::put);
    all.removeAll(
        java.util.Set.of(
            "content-length",
            "content-encoding",
            "transfer-encoding",
            "retry-after",
            "retry-after-ms"));
    all.replace("content-type", "application/json");
    all.replace("x-should-retry", String.valueOf(decision instanceof RetryDecision.Retry));
    Duration hint = info.retryAfter();
    if (hint != null && decision instanceof RetryDecision.Retry) {
      all.put("retry-after-ms", String.valueOf(hint.toMillis()));
    }
    return new Answer(
        200 <= status && status < 300 ? statusOf(info) : status, all.build(), ErrorBody.of(info));
  }

  private static int statusOf(ErrorInfo info) {
    Registry.CodeInfo known = Registry.CODES.get(info.code());
    return known == null || known.httpStatus() == 0 ? BAD_GATEWAY : known.httpStatus();
  }

  /** Of a field that a proxy added once more, the first counts. */
  private static Map<String, String> lowerCase(Headers headers) {
    Map<String, String> all = new TreeMap<>();
    for (String name : headers.names()) {
      all.put(name.toLowerCase(Locale.ROOT), headers.values(name).get(0));
    }
    return all;
  }
}
