package io.lastword.openai;

import com.openai.core.http.Headers;
import com.openai.errors.OpenAIIoException;
import com.openai.errors.OpenAIServiceException;
import io.lastword.Codes;
import io.lastword.Partial;
import io.lastword.core.Classifier;
import io.lastword.core.Json;
import io.lastword.errors.ErrorInfo;
import io.lastword.errors.LastwordException;
import java.io.InterruptedIOException;
import java.net.SocketTimeoutException;
import java.nio.charset.StandardCharsets;
import java.time.Instant;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Optional;
import java.util.TreeMap;

/** The contract's exception for what openai-java threw. */
public final class LastwordErrors {

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
    Map<String, String> headers = new TreeMap<>();
    Headers given = error.headers();
    for (String name : given.names()) {
      headers.put(name.toLowerCase(Locale.ROOT), given.values(name).get(0));
    }
    String body;
    try {
      body = Json.write(Map.of("error", error.body().convert(Object.class)));
    } catch (Json.NotJsonException | RuntimeException e) { // a body that is none: its status speaks
      body = "";
    }
    int status = error.statusCode();
    ErrorInfo info =
        Classifier.response(status, headers, body.getBytes(StandardCharsets.UTF_8), Instant.now());
    return info != null
        ? info
        : Classifier.error(Codes.INTERNAL_SERVER_ERROR, String.valueOf(error.getMessage())).build();
  }

  private static ErrorInfo failed(OpenAIIoException error) {
    Throwable cause = error.getCause();
    String said = String.valueOf(cause == null ? error.getMessage() : cause.getMessage());
    if (cause instanceof SocketTimeoutException && said.contains("onnect")) {
      return Classifier.error(
              Codes.CONNECT_TIMEOUT, "no connection within the limit (" + said + ")")
          .build();
    }
    if (cause instanceof InterruptedIOException) {
      return Classifier.error(Codes.DEADLINE_EXCEEDED, "no answer within the limit (" + said + ")")
          .build();
    }
    return Classifier.error(Codes.CONNECTION_FAILED, "the connection failed (" + said + ")")
        .build();
  }

  private static LastwordException exception(ErrorInfo info, Throwable cause) {
    return LastwordException.of(info, Partial.NOTHING, List.of(), cause);
  }
}
