package io.lastword.scripted;

import io.lastword.vectors.Vectors;
import java.nio.charset.StandardCharsets;
import java.time.ZoneOffset;
import java.time.ZonedDateTime;
import java.time.format.DateTimeFormatter;
import java.util.ArrayList;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Set;
import java.util.stream.Collectors;

/** One exchange of a vector, read: what answers one request. */
final class Script {

  /** Declared and never sent, when a body with a length is to be cut. */
  private static final int MISSING_BYTES = 64;

  final Integer status;
  final List<Step> before;
  final List<Step> steps;
  final boolean closes;
  final boolean chunked;
  final Map<String, Object> request;
  private final List<Map.Entry<String, Object>> headers = new ArrayList<>();

  Script(Map<String, Object> source) {
    status = (Integer) source.get("status");
    before = Step.all(Vectors.maps(source, "before"));
    steps = Step.all(Vectors.maps(source, "steps"));
    if (steps.isEmpty() || !(steps.get(steps.size() - 1) instanceof Step.End)) {
      steps.add(new Step.End("complete"));
    }
    request = Vectors.map(source, "request");
    Map<String, Object> given = Vectors.map(source, "headers");
    given.forEach(this::add);
    Set<String> named =
        given.keySet().stream()
            .map(name -> name.toLowerCase(Locale.ROOT))
            .collect(Collectors.toSet());
    if (status != null && status != 204 && status != 304) {
      boolean events =
          Vectors.maps(source, "steps").stream()
              .anyMatch(
                  each ->
                      each.containsKey("data") || Vectors.map(each, "repeat").containsKey("data"));
      defaults((String) source.getOrDefault("framing", "chunked"), events)
          .forEach(
              (name, value) -> {
                if (!named.contains(name)) {
                  add(name, value);
                }
              });
    }
    closes = status == null || has("connection", "close") || "close".equals(source.get("then"));
    chunked = status != null && has("transfer-encoding", "chunked");
  }

  byte[] head() {
    if (status == null) {
      return new byte[0];
    }
    StringBuilder head = new StringBuilder("HTTP/1.1 " + status + " Scripted\r\n");
    headers.forEach(
        each ->
            head.append(each.getKey()).append(": ").append(text(each.getValue())).append("\r\n"));
    return head.append("\r\n").toString().getBytes(StandardCharsets.ISO_8859_1);
  }

  /** Whether what follows a step waits for the client to leave. */
  boolean expectsLeaving(int position) {
    return steps.subList(position, steps.size()).stream()
        .anyMatch(
            each -> each instanceof Step.AwaitDisconnect || each.equals(new Step.End("stall")));
  }

  private void add(String name, Object value) {
    if (value instanceof List<?> several) {
      several.forEach(each -> add(name, each));
    } else if (value != null) {
      headers.add(Map.entry(name, value));
    }
  }

  private boolean has(String name, String value) {
    return headers.stream()
        .anyMatch(each -> each.getKey().equalsIgnoreCase(name) && value.equals(each.getValue()));
  }

  private Map<String, String> defaults(String framing, boolean events) {
    String type = events ? "text/event-stream; charset=utf-8" : "application/json";
    int length = Step.joined(steps).length;
    boolean whole = steps.get(steps.size() - 1).equals(new Step.End("complete"));
    return switch (framing) {
      case "chunked" -> Map.of("content-type", type, "transfer-encoding", "chunked");
      case "close" -> Map.of("content-type", type, "connection", "close");
      case "content-length" ->
          Map.of(
              "content-type",
              type,
              "content-length",
              String.valueOf(whole ? length : length + MISSING_BYTES));
      default -> throw new IllegalArgumentException("framing: " + framing);
    };
  }

  private static String text(Object value) {
    if (value instanceof Map<?, ?> date) {
      ZonedDateTime at =
          ZonedDateTime.now(ZoneOffset.UTC).plusSeconds((Integer) date.get("http_date_in_s"));
      return DateTimeFormatter.RFC_1123_DATE_TIME.format(at);
    }
    return value.toString();
  }
}
