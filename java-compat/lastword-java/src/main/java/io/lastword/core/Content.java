package io.lastword.core;

import java.util.List;
import java.util.Map;
import org.jspecify.annotations.Nullable;

/** What the {@code content} of a message or of a delta says. */
public final class Content {

  private Content() {}

  /**
   * Its text: a string, or parts with a {@code text} each, as Mistral sends it; else {@code ""}.
   */
  public static String text(@Nullable Object content) {
    if (content instanceof String text) {
      return text;
    }
    if (!(content instanceof List<?> parts)) {
      return "";
    }
    StringBuilder text = new StringBuilder();
    for (Object each : parts) {
      Map<String, @Nullable Object> part = Json.object(each);
      if (part != null) {
        text.append(text(part.get("text")));
      }
    }
    return text.toString();
  }
}
