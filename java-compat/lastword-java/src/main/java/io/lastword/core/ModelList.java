package io.lastword.core;

import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import org.jspecify.annotations.Nullable;

/** What the list of models has to be ({@code GET /models}). */
public final class ModelList {

  private ModelList() {}

  /** What is wrong with parsed JSON that should be one; null if nothing is. */
  public static @Nullable String wrong(@Nullable Object parsed) {
    Map<String, @Nullable Object> body = Json.object(parsed);
    if (body == null || !(body.get("data") instanceof List<?> data)) {
      return "the answer has no list named data";
    }
    for (Object each : data) {
      Map<String, @Nullable Object> entry = Json.object(each);
      if (entry == null || !(entry.get("id") instanceof String)) {
        return "the list named data has an entry without an id";
      }
    }
    return null;
  }

  /** The entries of one that nothing is wrong with. */
  public static List<Map<String, @Nullable Object>> entries(@Nullable Object parsed) {
    Map<String, @Nullable Object> body = Objects.requireNonNull(Json.object(parsed));
    List<Map<String, @Nullable Object>> entries = new ArrayList<>();
    for (Object each : (List<?>) Objects.requireNonNull(body.get("data"))) {
      entries.add(Objects.requireNonNull(Json.object(each)));
    }
    return entries;
  }
}
