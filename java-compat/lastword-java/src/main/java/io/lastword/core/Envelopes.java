package io.lastword.core;

import static io.lastword.core.Json.object;
import static io.lastword.core.Json.says;
import static io.lastword.core.Json.shown;

import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.StringJoiner;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import org.jspecify.annotations.Nullable;

/**
 * The envelopes that servers put errors in, read into one flat mapping.
 *
 * <p>The mapping has {@code message} (a string, always) and some of type, param, code, status
 * (Integer), request_id, details (a map), and the contract's own members.
 */
final class Envelopes {

  private static final List<String> COPIED =
      List.of(
          "type",
          "param",
          "code",
          "category",
          "retryable",
          "retry_after_ms",
          "request_id",
          "origin",
          "contract");
  // llama.cpp's exceed_context_size_error
  private static final Map<String, String> NUMBERS =
      Map.of("n_prompt_tokens", "prompt_tokens", "n_ctx", "max_model_len");
  // envelopes in envelopes; what lies deeper is no message
  private static final int MAX_NESTING = 8;
  // characters in which a page must have its title
  private static final int MAX_TITLE = 8192;
  private static final int MAX_SHOWN = 500;
  private static final Pattern TITLE =
      Pattern.compile("<title[^>]*>(.*?)</title>", Pattern.CASE_INSENSITIVE | Pattern.DOTALL);

  private Envelopes() {}

  /**
   * Read {@code value} if it has an error's shape (CLS-3), else null.
   *
   * <p>Chunks and answers may carry an {@code error} or {@code detail} that is null or empty
   * (CLS-8); an object with {@code choices} is an error only if {@code error} is not empty, or
   * {@code object} or {@code type} says so (CLS-7).
   */
  static @Nullable Map<String, @Nullable Object> errorFields(@Nullable Object value) {
    if (value instanceof List<?> list && list.size() == 1) { // Google's OpenAI-compatible endpoint
      value = list.get(0);
    }
    Map<String, @Nullable Object> map = object(value);
    if (map == null) {
      return null;
    }
    if (says(map.get("error"))) {
      return ofError(map.get("error"), map);
    }
    if ("error".equals(map.get("object")) || "error".equals(map.get("type"))) {
      return ofMapping(map);
    }
    if (map.containsKey("choices")) {
      return null;
    }
    Map<String, @Nullable Object> response = object(map.get("response"));
    if ("response.failed".equals(map.get("type")) && response != null) {
      return ofError(says(response.get("error")) ? response.get("error") : Map.of(), map);
    }
    if (map.get("detail") != null) {
      return ofDetail(map.get("detail"));
    }
    boolean answers = map.containsKey("id") || map.containsKey("data");
    boolean named = map.containsKey("code") || map.containsKey("type");
    return map.get("message") instanceof String && named && !answers ? ofMapping(map) : null;
  }

  /** Read a value known to be an error; null where it says nothing at all. */
  static @Nullable Map<String, @Nullable Object> anyFields(@Nullable Object value) {
    Map<String, @Nullable Object> fields = errorFields(value);
    if (fields != null) {
      return fields;
    }
    Map<String, @Nullable Object> map = object(value);
    if (map != null && !map.isEmpty()) {
      fields = ofMapping(map);
      if ("".equals(fields.get("message"))) {
        // no member that we know to be text, so all of it (CLS-9)
        fields.put("message", Text.cut(shown(map), MAX_SHOWN));
      }
      return fields;
    }
    return value instanceof String text && !Text.strip(text).isEmpty()
        ? messageOf(Text.strip(text))
        : null;
  }

  /**
   * A sentence for a body that is no JSON: the title of an HTML page, the first line of a text, or
   * that it is empty.
   */
  static String describeText(int status, String text) {
    String stripped = Text.strip(text);
    if (stripped.isEmpty()) {
      return "HTTP " + status + " with an empty body";
    }
    Matcher title = TITLE.matcher(Text.cut(stripped, MAX_TITLE));
    if (title.find()) {
      return "HTTP "
          + status
          + " with an HTML page: "
          + title.group(1).strip().replaceAll("\\s+", " ");
    }
    if (stripped.startsWith("<")) {
      return "HTTP " + status + " with a body of markup";
    }
    return Text.cut(stripped.lines().findFirst().orElse(stripped), MAX_SHOWN);
  }

  static Map<String, @Nullable Object> messageOf(String message) {
    Map<String, @Nullable Object> fields = new LinkedHashMap<>();
    fields.put("message", message);
    return fields;
  }

  private static Map<String, @Nullable Object> ofError(
      @Nullable Object error, Map<String, @Nullable Object> outer) {
    Map<String, @Nullable Object> inner = object(error);
    Map<String, @Nullable Object> fields =
        inner != null ? ofMapping(inner) : messageOf(shown(error));
    if (inner == null) {
      if (outer.containsKey("error_type")) { // TGI
        fields.put("type", outer.get("error_type"));
      }
      Object said = outer.get("message");
      // Spring and Nest: error is the status in words
      if (says(said) && !Objects.equals(said, error)) {
        String about = shown(said);
        fields.put(
            "message",
            error instanceof String text && !text.isEmpty() ? text + ": " + about : about);
      }
    }
    if (outer.get("request_id") instanceof String) { // Anthropic
      fields.putIfAbsent("request_id", outer.get("request_id"));
    }
    return fields;
  }

  private static Map<String, @Nullable Object> ofMapping(Map<String, @Nullable Object> value) {
    Map<String, @Nullable Object> fields = new LinkedHashMap<>();
    Object message = null;
    for (int level = 0; level < MAX_NESTING; level++) {
      for (String name : COPIED) {
        if (value.get(name) != null) {
          fields.put(name, value.get(name));
        }
      }
      message = says(value.get("message")) ? value.get("message") : value.get("error");
      Map<String, @Nullable Object> inner = object(message);
      if (inner == null) {
        break;
      }
      value = inner; // an envelope in an envelope, as gateways make them
    }
    fields.put("message", message == null ? "" : shown(message));
    Map<String, @Nullable Object> details = new LinkedHashMap<>();
    Map<String, @Nullable Object> given = object(value.get("details"));
    if (given != null) {
      details.putAll(given);
    }
    for (Map.Entry<String, String> each : NUMBERS.entrySet()) {
      if (isWhole(value.get(each.getKey()))) {
        details.put(each.getValue(), value.get(each.getKey()));
      }
    }
    fields.put("details", details);
    Object status = value.get("http_status_code"); // TGI's OpenAI route
    if (status instanceof Integer number && 400 <= number && number < 600) {
      fields.put("status", number);
    }
    return fields;
  }

  private static Map<String, @Nullable Object> ofDetail(@Nullable Object detail) {
    Map<String, @Nullable Object> map = object(detail);
    if (map != null) { // LiteLLM: {"detail": {"error": …}}
      return says(map.get("error")) ? ofError(map.get("error"), map) : ofMapping(map);
    }
    if (!(detail instanceof List<?> problems)) {
      return messageOf(shown(detail));
    }
    // FastAPI's validation errors: [{"loc": […], "msg": …, "type": …}]
    StringJoiner texts = new StringJoiner("; ");
    String param = null;
    boolean first = true;
    for (Object each : problems) {
      Map<String, @Nullable Object> problem = object(each);
      if (problem == null) {
        continue;
      }
      String place = place(problem.get("loc"));
      String said = problem.containsKey("msg") ? shown(problem.get("msg")) : "";
      texts.add(place.isEmpty() ? said : place + ": " + said);
      if (first) {
        param = place.isEmpty() ? null : place;
        first = false;
      }
    }
    Map<String, @Nullable Object> fields =
        messageOf(texts.length() == 0 ? shown(detail) : texts.toString());
    fields.put("param", param);
    return fields;
  }

  private static String place(@Nullable Object loc) {
    if (!(loc instanceof List<?> parts)) {
      return says(loc) ? shown(loc) : "";
    }
    StringJoiner joined = new StringJoiner(".");
    parts.forEach(part -> joined.add(shown(part)));
    return joined.toString();
  }

  static boolean isWhole(@Nullable Object value) {
    return value instanceof Integer
        || value instanceof Long
        || value instanceof java.math.BigInteger;
  }
}
