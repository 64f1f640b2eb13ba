package io.lastword;

import io.lastword.core.Json;
import io.lastword.errors.InvalidToolArgumentsException;
import java.io.Serializable;
import java.util.Map;
import org.jspecify.annotations.Nullable;

/**
 * One tool call of an answer.
 *
 * @param id the server's id of it, to answer to
 * @param name the tool
 * @param rawArguments the model's own text, never repaired (TOOL-1)
 * @param choice the choice in which it stood
 * @param index where it stood there
 */
public record ToolCall(@Nullable String id, String name, String rawArguments, int choice, int index)
    implements Serializable {

  /**
   * The arguments, parsed; no text at all is an empty map.
   *
   * @throws InvalidToolArgumentsException if the model did not write a JSON object
   */
  public Map<String, @Nullable Object> arguments() {
    if (rawArguments.isBlank()) {
      return Map.of();
    }
    Map<String, @Nullable Object> object;
    try {
      object = Json.object(Json.parseStrictly(rawArguments));
    } catch (Json.NotJsonException e) {
      throw new InvalidToolArgumentsException(this, String.valueOf(e.getMessage()), e);
    }
    if (object == null) {
      throw new InvalidToolArgumentsException(this, "JSON, but no object", null);
    }
    return object;
  }

  /** Whether the arguments are one JSON object, so that nothing can have been cut off. */
  public boolean whole() {
    try {
      return Json.object(Json.parse(rawArguments)) != null;
    } catch (Json.NotJsonException e) {
      return false;
    }
  }
}
