package io.lastword;

import java.util.Collections;
import java.util.Map;
import org.jspecify.annotations.Nullable;

/**
 * A model that the server lists.
 *
 * @param id what a request calls it
 * @param body all that the server says of it, as parsed JSON; vLLM's has {@code max_model_len}
 */
public record Model(String id, Map<String, @Nullable Object> body) {

  /** Lets nobody change it. */
  public Model {
    body = Collections.unmodifiableMap(body);
  }
}
