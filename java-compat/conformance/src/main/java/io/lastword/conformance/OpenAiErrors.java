package io.lastword.conformance;

import com.openai.errors.OpenAIInvalidDataException;
import com.openai.errors.OpenAIIoException;
import com.openai.errors.OpenAIServiceException;
import java.util.Map;
import org.jspecify.annotations.Nullable;

/** What openai-java says of an error, to whoever calls it: a user, or a library on top of it. */
public final class OpenAiErrors {

  private OpenAiErrors() {}

  /** The report on what it threw. */
  public static Map<String, Object> report(Throwable thrown) {
    String message = String.valueOf(thrown.getMessage());
    if (thrown instanceof OpenAIServiceException error) {
      return ErrorReport.of("internal_server_error", code(error), error.statusCode(), message);
    }
    if (!(thrown instanceof OpenAIIoException)) {
      return ErrorReport.of("malformed_response", null, null, message);
    }
    // "Stream failed" once there is an answer's head, else "Request failed"
    boolean begun = message.equals("Stream failed");
    return ErrorReport.of(begun ? "stream_incomplete" : "connection_failed", null, null, message);
  }

  private static @Nullable String code(OpenAIServiceException error) {
    try {
      return error.code().orElse(null);
    } catch (OpenAIInvalidDataException e) {
      // it is no string, as vLLM's is not
      return null;
    }
  }
}
