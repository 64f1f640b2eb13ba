package io.lastword.core;

import static io.lastword.core.Json.object;
import static io.lastword.core.Json.says;

import io.lastword.errors.ErrorInfo;
import java.util.List;
import java.util.Map;
import org.jspecify.annotations.Nullable;

/**
 * What one event of a stream is, by itself: what came before it makes no difference.
 *
 * <p>An error is looked for before a chunk, since what has both is an error.
 */
sealed interface StreamEvent {

  /** A part of the answer. */
  record Chunk(Map<String, @Nullable Object> body, List<?> choices) implements StreamEvent {}

  /** Token counts without choices. */
  record Counts(Map<String, @Nullable Object> usage) implements StreamEvent {}

  /** The terminal event. */
  record Done() implements StreamEvent {}

  /** An error of the server, or what no stream may contain. */
  record Failure(ErrorInfo error) implements StreamEvent {}

  /** A keep-alive, or an object that says nothing about the answer. */
  record Ignored() implements StreamEvent {}

  static StreamEvent of(ServerSentEvent event) {
    Object value;
    try {
      value = Json.parse(event.data());
    } catch (Json.NotJsonException e) {
      return notJson(event);
    }
    Map<String, @Nullable Object> map = object(value);
    if (map == null
        || event.name().equals("error")
        || says(map.get("error"))
        || "error".equals(map.get("object")) // CLS-7: before choices is read
        || "error".equals(map.get("type"))
        || !(map.get("choices") instanceof List<?> choices)) {
      return notAChunk(event.name(), value);
    }
    return new Chunk(map, choices);
  }

  private static StreamEvent notJson(ServerSentEvent event) {
    String data = Text.strip(event.data());
    if (event.name().equals("error")) {
      ErrorInfo told = Classifier.frame("error", data);
      return new Failure(told != null ? told : Classifier.malformed("an error event", data));
    }
    if (data.equals("[DONE]")) {
      return new Done();
    }
    return data.isEmpty() // an empty data line is a keep-alive of some servers
        ? new Ignored()
        : new Failure(Classifier.malformed("an event of the stream is no JSON", event.data()));
  }

  private static StreamEvent notAChunk(String name, @Nullable Object value) {
    ErrorInfo told = Classifier.frame(name, value);
    if (told != null) {
      return new Failure(told);
    }
    Map<String, @Nullable Object> map = object(value);
    if (map == null || map.get("choices") != null) {
      return new Failure(Classifier.malformed("an event of the stream is no chunk", value));
    }
    Map<String, @Nullable Object> usage = object(map.get("usage"));
    return usage == null ? new Ignored() : new Counts(usage);
  }
}
