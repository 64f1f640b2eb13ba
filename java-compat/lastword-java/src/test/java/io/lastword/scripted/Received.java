package io.lastword.scripted;

import io.lastword.core.Json;
import io.lastword.vectors.Vectors;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Objects;
import java.util.regex.Pattern;

/**
 * One request as the scripted server saw it, and what became of its client. Times are those of
 * System.nanoTime.
 */
public final class Received {

  public final String method;
  public final String path;
  public final Map<String, String> headers;
  public final byte[] body;
  public final int connection;
  public final long at = System.nanoTime();
  public volatile long endedAt;
  public volatile long disconnectedAt;
  volatile boolean answered;
  volatile int unsent;
  volatile long stayed = -1;
  final List<String> differences = new ArrayList<>();

  Received(String method, String path, Map<String, String> headers, byte[] body, int connection) {
    this.method = method;
    this.path = path;
    this.headers = headers;
    this.body = body;
    this.connection = connection;
  }

  /** What was otherwise than the script says. */
  public List<String> problems() {
    List<String> found = new ArrayList<>(differences);
    if (stayed >= 0) {
      found.add("the client had not left within " + stayed + " ms");
    }
    if (unsent > 0) {
      found.add("the client left with " + unsent + " steps still to be sent");
    }
    if (!answered && found.isEmpty()) {
      found.add("its script was not played to the end");
    }
    return found;
  }

  /** Hold it against an exchange's {@code request} member. */
  void compare(Map<String, Object> expected, Received first) {
    if (!method.equals(expected.getOrDefault("method", method))) {
      differences.add("its method is " + method);
    }
    if (!path.equals(expected.getOrDefault("path", path))) {
      differences.add("its path is " + path);
    }
    Vectors.map(expected, "headers")
        .forEach(
            (name, rule) -> {
              String value = headers.get(name.toLowerCase(Locale.ROOT));
              if (!keeps(rule, value, first.headers.get(name.toLowerCase(Locale.ROOT)))) {
                differences.add("its header " + name + " is " + value + ", not " + rule);
              }
            });
    Vectors.map(expected, "body")
        .forEach(
            (name, value) -> {
              Object given = json().get(name);
              if (!Objects.equals(given, value)) {
                differences.add("its body has " + name + " " + given + ", not " + value);
              }
            });
  }

  private static boolean keeps(Object rule, String value, String first) {
    if (!(rule instanceof Map<?, ?> rules)) {
      return Objects.equals(rule, value);
    }
    double number = value != null && value.matches("\\d+") ? Double.parseDouble(value) : Double.NaN;
    for (Map.Entry<?, ?> each : rules.entrySet()) {
      boolean kept =
          switch ((String) each.getKey()) {
            case "pattern" ->
                value != null && Pattern.compile((String) each.getValue()).matcher(value).find();
            case "same_as_first" -> value != null && value.equals(first);
            case "minimum" -> number >= ((Number) each.getValue()).doubleValue();
            case "maximum" -> number <= ((Number) each.getValue()).doubleValue();
            default -> throw new IllegalArgumentException("a rule for a header: " + each);
          };
      if (!kept) {
        return false;
      }
    }
    return true;
  }

  private Map<String, Object> json() {
    try {
      return Vectors.map(Json.parse(new String(body, StandardCharsets.UTF_8)));
    } catch (Json.NotJsonException e) {
      return Map.of();
    }
  }
}
