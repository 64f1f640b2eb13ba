package io.lastword;

import io.lastword.core.Json;
import java.util.Map;
import org.jspecify.annotations.Nullable;

/**
 * A model that the server lists.
 *
 * @param id what a request calls it
 * @param body all that the server says of it, as parsed JSON; vLLM's has {@code max_model_len}
 */
public record Model(String id, Map<String, @Nullable Object> body) {

  /** Keeps a copy that nobody can change. */
  public Model {
    body = Json.frozen(body);
  }
}
