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
    verdict(expect, result, found);
    for (String name : EQUAL) {
      if (both(expect, result, name) && !same(expect.get(name), result.get(name))) {
        found.add(name + " is " + result.get(name) + ", not " + expect.get(name));
      }
    }
    if (both(expect, result, "details")) {
      details(Vectors.map(expect, "details"), Vectors.map(result, "details"), found);
    }
    if (both(expect, result, "message_contains", "message")) {
      message(expect, String.valueOf(result.get("message")), found);
    }
    if (both(expect, result, "warnings")
        && result.get("warnings") instanceof List<?> warnings
        && warnings.size() != (Integer) expect.get("warnings")) {
      found.add("warnings are " + warnings);
    }
    if (both(expect, result, "tool_calls")) {
      toolCalls(Vectors.maps(expect, "tool_calls"), Vectors.maps(result, "tool_calls"), found);
    }
    return found;
  }

  private static boolean both(Map<String, Object> expect, Map<String, Object> result, String name) {
    return both(expect, result, name, name);
  }

  private static boolean both(
      Map<String, Object> expect, Map<String, Object> result, String expected, String given) {
    return expect.containsKey(expected) && result.containsKey(given);
  }

  private static void verdict(
      Map<String, Object> expect, Map<String, Object> result, List<String> found) {
    if (!expect.get("outcome").equals(result.get("outcome"))) {
      found.add("outcome is " + result.get("outcome") + ", not " + expect.get("outcome"));
    }
    List<Object> codes = new ArrayList<>(Vectors.texts(expect, "codes_also_accepted", List.of()));
    codes.add(expect.get("code"));
    if (!codes.contains(result.get("code"))) {
      found.add(
          "code is " + result.get("code") + ", not one of " + codes + ": " + result.get("message"));
    }
  }

  private static void details(
      Map<String, Object> wanted, Map<String, Object> details, List<String> found) {
    wanted.forEach(
        (name, value) -> {
          if (!same(value, details.get(name))) {
            found.add("details has " + name + " " + details.get(name) + ", not " + value);
          }
        });
  }

  private static void message(Map<String, Object> expect, String message, List<String> found) {
    for (String part : Vectors.texts(expect, "message_contains", List.of())) {
      if (!message.contains(part)) {
        found.add("message lacks '" + part + "': " + message);
      }
    }
  }

  private static void toolCalls(
      List<Map<String, Object>> wanted, List<Map<String, Object>> calls, List<String> found) {
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
