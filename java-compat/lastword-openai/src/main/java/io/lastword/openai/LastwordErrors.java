package io.lastword.openai;

import com.openai.errors.OpenAIIoException;
import com.openai.errors.OpenAIServiceException;
import io.lastword.Codes;
import io.lastword.Partial;
import io.lastword.core.Classifier;
import io.lastword.core.Json;
import io.lastword.core.ResponseHead;
import io.lastword.errors.ErrorInfo;
import io.lastword.errors.LastwordException;
import io.lastword.transport.JdkErrors;
import java.io.InterruptedIOException;
import java.net.SocketTimeoutException;
import java.nio.charset.StandardCharsets;
import java.time.Instant;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.UUID;
import java.util.concurrent.CancellationException;
import org.jspecify.annotations.Nullable;

/** The contract's exception for what openai-java threw. */
public final class LastwordErrors {

  /** The header of an error response of ours that has the status that really came, or none. */
  static final String STATUS = "x-lastword-status";

  // Before the status, so that no server can say it.
  private static final String OURS = UUID.randomUUID() + " ";

  private LastwordErrors() {}

  /**
   * The contract's exception for {@code thrown} or for the nearest of its causes; empty if none of
   * them is about a request.
   */
  public static Optional<LastwordException> of(Throwable thrown) {
    for (Throwable each = thrown; each != null; each = each.getCause()) {
      if (each instanceof LastwordException known) {
        return Optional.of(known);
      }
    }
    for (Throwable each = thrown; each != null; each = each.getCause()) {
      if (each instanceof OpenAIServiceException refused) {
        return Optional.of(exception(refused(refused), refused));
      }
      if (each instanceof OpenAIIoException failed) {
        return Optional.of(exception(failed(failed), failed));
      }
    }
    return Optional.empty();
  }

  private static ErrorInfo refused(OpenAIServiceException error) {
    ResponseHead head = Answer.head(error.statusCode(), error.headers());
    String body;
    try {
      body = Json.write(Map.of("error", error.body().convert(Object.class)));
    } catch (Json.NotJsonException | RuntimeException e) { // a body that is none: its status speaks
      body = "";
    }
    byte[] bytes = body.getBytes(StandardCharsets.UTF_8);
    ErrorInfo info = Classifier.response(head.status(), head.headers(), bytes, Instant.now());
    if (info == null) {
      return Classifier.error(Codes.INTERNAL_SERVER_ERROR, String.valueOf(error.getMessage()))
          .build();
    }
    String real = head.headers().getOrDefault(STATUS, "");
    if (!real.startsWith(OURS)) {
      return info;
    }
    String status = real.substring(OURS.length());
    return info.toBuilder().status(status.isEmpty() ? null : Integer.valueOf(status)).build();
  }

  /** The value of that header. */
  static String real(@Nullable Integer status) {
    return OURS + (status == null ? "" : status);
  }

  /**
   * Why a body broke off, where that was not the connection: a timer of the transport, somebody who
   * ended the call, or what cannot be decoded. Null if it was.
   */
  static @Nullable ErrorInfo ofBody(@Nullable Throwable broken) {
    for (Throwable each = broken; each != null; each = each.getCause()) {
      if (each instanceof LastwordException known) {
        return known.code().equals(Codes.STREAM_INCOMPLETE) ? null : known.info();
      }
      if (each instanceof CancellationException) {
        return Classifier.error(Codes.CANCELLED, String.valueOf(each.getMessage())).build();
      }
      if (each instanceof InterruptedIOException late) {
        return late(late);
      }
    }
    return null;
  }

  private static ErrorInfo failed(OpenAIIoException error) {
    Throwable cause = error.getCause();
    if (cause instanceof InterruptedIOException late) {
      return late(late);
    }
    String said = String.valueOf(cause == null ? error.getMessage() : cause.getMessage());
    ErrorInfo untrusted = JdkErrors.untrusted(cause, "the server");
    return untrusted != null
        ? untrusted
        : Classifier.error(Codes.CONNECTION_FAILED, "the connection failed (" + said + ")").build();
  }

  /** A timer of the HTTP client, as OkHttp tells of it. */
  private static ErrorInfo late(InterruptedIOException error) {
    String said = String.valueOf(error.getMessage());
    boolean connecting = error instanceof SocketTimeoutException && said.contains("onnect");
    return Classifier.error(
            connecting ? Codes.CONNECT_TIMEOUT : Codes.DEADLINE_EXCEEDED,
            (connecting ? "no connection" : "no whole answer") + " within the limit (" + said + ")")
        .build();
  }

  private static LastwordException exception(ErrorInfo info, Throwable cause) {
    return LastwordException.of(info, Partial.NOTHING, List.of(), cause);
  }
}
