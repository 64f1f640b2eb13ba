package io.lastword.vectors;

import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Objects;

/** Holds a result (contract/schemas/outcome.json) against what a vector expects. */
public final class Expected {

  private static final List<String> EQUAL =
      List.of(
          "text",
          "texts",
          "finish_reasons",
          "usage",
          "category",
          "retryable",
          "status",
          "param",
          "request_id",
          "retry_after_ms");

  private Expected() {}

  /** One sentence for each difference; members that {@code result} lacks are passed over. */
  public static List<String> differences(Map<String, Object> expect, Map<String, Object> result) {
    List<String> found = new ArrayList<>();
    if (!expect.get("outcome").equals(result.get("outcome"))) {
      found.add("outcome is " + result.get("outcome") + ", not " + expect.get("outcome"));
    }
    List<Object> codes = new ArrayList<>(Vectors.texts(expect, "codes_also_accepted", List.of()));
    codes.add(expect.get("code"));
    if (!codes.contains(result.get("code"))) {
      found.add(
          "code is " + result.get("code") + ", not one of " + codes + ": " + result.get("message"));
    }
    for (String name : EQUAL) {
      if (expect.containsKey(name)
          && result.containsKey(name)
          && !same(expect.get(name), result.get(name))) {
        found.add(name + " is " + result.get(name) + ", not " + expect.get(name));
      }
    }
    Vectors.map(expect, "details")
        .forEach(
            (name, value) -> {
              if (result.containsKey("details")
                  && !same(value, Vectors.map(result, "details").get(name))) {
                found.add(
                    "details has "
                        + name
                        + " "
                        + Vectors.map(result, "details").get(name)
                        + ", not "
                        + value);
              }
            });
    for (String part : Vectors.texts(expect, "message_contains", List.of())) {
      if (result.containsKey("message") && !String.valueOf(result.get("message")).contains(part)) {
        found.add("message lacks '" + part + "': " + result.get("message"));
      }
    }
    if (expect.containsKey("warnings") && result.get("warnings") instanceof List<?> warnings) {
      if (warnings.size() != (Integer) expect.get("warnings")) {
        found.add("warnings are " + warnings);
      }
    }
    if (expect.containsKey("tool_calls") && result.containsKey("tool_calls")) {
      List<Map<String, Object>> wanted = Vectors.maps(expect, "tool_calls");
      List<Map<String, Object>> calls = Vectors.maps(result, "tool_calls");
      boolean same = wanted.size() == calls.size();
      for (int i = 0; same && i < wanted.size(); i++) {
        Map<String, Object> call = calls.get(i);
        same =
            wanted.get(i).entrySet().stream()
                .allMatch(each -> same(each.getValue(), call.get(each.getKey())));
      }
      if (!same) {
        found.add("tool_calls are " + calls + ", not " + wanted);
      }
    }
    return found;
  }

  /** Equal as JSON: 1 and 1.0 are the same number. */
  private static boolean same(Object one, Object other) {
    if (one instanceof Number a && other instanceof Number b) {
      return a.doubleValue() == b.doubleValue();
    }
    if (one instanceof List<?> a && other instanceof List<?> b) {
      boolean same = a.size() == b.size();
      for (int i = 0; same && i < a.size(); i++) {
        same = same(a.get(i), b.get(i));
      }
      return same;
    }
    if (one instanceof Map<?, ?> a && other instanceof Map<?, ?> b) {
      return a.keySet().equals(b.keySet())
          && a.keySet().stream().allMatch(key -> same(a.get(key), b.get(key)));
    }
    return Objects.equals(one, other);
  }
}
