package io.lastword.peers.langchain4j;

import com.fasterxml.jackson.core.JsonProcessingException;
import dev.langchain4j.exception.ContentFilteredException;
import dev.langchain4j.exception.HttpException;
import dev.langchain4j.exception.InternalServerException;
import dev.langchain4j.exception.LangChain4jException;
import dev.langchain4j.exception.TimeoutException;
import dev.langchain4j.exception.UnresolvedModelServerException;
import io.lastword.conformance.ErrorReport;
import java.io.IOException;
import java.util.Map;
import org.jspecify.annotations.Nullable;

/** What LangChain4j says of an error: the status that its HttpException has, or else its class. */
final class ModelErrors {

  private ModelErrors() {}

  /** The report on what was thrown, or given to a handler. */
  static Map<String, Object> report(Throwable error) {
    HttpException http = cause(error, HttpException.class);
    String byClass = http != null ? "invalid_request_error" : byClass(error);
    Integer status = http == null ? null : http.statusCode();
    return ErrorReport.of(byClass, null, status, String.valueOf(error.getMessage()));
  }

  private static String byClass(Throwable error) {
    if (error instanceof TimeoutException) {
      // connecting is the only thing that a case limits
      return "connect_timeout";
    }
    if (error instanceof ContentFilteredException) {
      return "content_filtered";
    }
    if (error instanceof UnresolvedModelServerException) {
      return "connection_failed";
    }
    // an event that is named error
    boolean event = error.getClass() == RuntimeException.class && error.getCause() == null;
    if (error instanceof InternalServerException || event) {
      return "internal_server_error";
    }
    if (cause(error, IOException.class) == null
        || cause(error, JsonProcessingException.class) != null) {
      return "malformed_response";
    }
    // Before the head of an answer it is a CompletionException, and after it the IOException
    // itself, in this.
    return error.getClass() == LangChain4jException.class
        ? "stream_incomplete"
        : "connection_failed";
  }

  private static <T> @Nullable T cause(Throwable error, Class<T> type) {
    for (Throwable each = error; each != null; each = each.getCause()) {
      if (type.isInstance(each)) {
        return type.cast(each);
      }
    }
    return null;
  }
}
