package io.lastword.core;

import java.util.List;
import java.util.Map;
import org.jspecify.annotations.Nullable;

/** How many answers a request asks for. */
public final class Choices {

  private Choices() {}

  /**
   * How many choices a request asks for: {@code n} × its prompts (OUT-3). A prompt is a text or a
   * list of token ids.
   */
  public static int expected(Map<String, ? extends @Nullable Object> body) {
    int prompts = 1;
    if (body.get("prompt") instanceof List<?> list && !list.isEmpty()) {
      prompts = list.get(0) instanceof Number || list.get(0) instanceof Boolean ? 1 : list.size();
    }
    double n = 1; // as servers read it that validate loosely: 2, 2.0 and "2" are two
    if (body.get("n") instanceof Number given) {
      n = given.doubleValue();
    } else if (body.get("n") instanceof String text
        && text.strip().matches("\\d{1,9}(\\.0{0,9})?")) {
      n = Double.parseDouble(text.strip());
    }
    boolean whole = n == Math.rint(n) && n > 0;
    return (int) Math.min((whole ? n : 1) * prompts, Integer.MAX_VALUE);
  }
}
