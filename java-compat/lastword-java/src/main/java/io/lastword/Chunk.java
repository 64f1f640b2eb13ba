package io.lastword;

import io.lastword.core.Content;
import io.lastword.core.Json;
import java.util.Collections;
import java.util.List;
import java.util.Map;
import org.jspecify.annotations.Nullable;

/**
 * One chunk of a stream.
 *
 * @param body all that the server sent, as parsed JSON: {@code id}, {@code model}, {@code choices},
 *     {@code usage}, and whatever else this server adds
 */
public record Chunk(Map<String, @Nullable Object> body) {

  /**
   * Lets nobody put anything into {@code body}. What is nested in it is no copy, since a chunk is
   * made for each token; no other chunk and no outcome shares it.
   */
  public Chunk {
    body = Collections.unmodifiableMap(body);
  }

  /** The text that it adds to choice 0, {@code ""} if none. */
  public String text() {
    return text(0);
  }

  /** The text that it adds to a choice, {@code ""} if none. */
  public String text(int choice) {
    StringBuilder text = new StringBuilder();
    Object choices = body.get("choices");
    for (Object each : choices instanceof List<?> list ? list : List.of()) {
      Map<String, @Nullable Object> given = Json.object(each);
      if (given == null) {
        continue;
      }
      Object index = given.get("index");
      if (choice == 0 && index == null || Integer.valueOf(choice).equals(index)) {
        Map<String, @Nullable Object> delta = Json.object(given.get("delta"));
        text.append(Content.text(delta != null ? delta.get("content") : null));
        text.append(Content.text(given.get("text")));
      }
    }
    return text.toString();
  }
}
