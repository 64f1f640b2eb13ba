package io.lastword.core;

import io.lastword.Category;
import io.lastword.Codes;
import io.lastword.Origin;
import io.lastword.OutcomeName;
import io.lastword.core.Registry.CodeInfo;
import io.lastword.core.Registry.RetryRule;
import io.lastword.errors.ErrorInfo;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.time.Instant;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.regex.Pattern;
import org.jspecify.annotations.Nullable;

/**
 * What an error means: any server's error body, in-stream frame or status becomes one contract
 * code.
 *
 * <p>Pure and table-driven. The tables are {@code contract/dialects.json} and {@code
 * contract/registry.json}, generated into {@link Registry}; the order in which they are asked is in
 * {@link ErrorCode#of} and nowhere else (the CLS rules of SPEC.md).
 */
public final class Classifier {

  /** How much of a server's own words an error keeps, in UTF-16 units. */
  static final int MAX_RAW = 4096;

  private static final Pattern REQUEST_ID = Pattern.compile("[A-Za-z0-9\\-_.:]{1,128}");
  private static final List<String> REQUEST_ID_HEADERS =
      List.of("x-request-id", "request-id", "apim-request-id", "x-litellm-call-id");

  private Classifier() {}

  /**
   * An error of a known code, which this side found: category, outcome and whether it is retryable
   * are the registry's.
   *
   * <p>A timer of the client's own is not worth the retry that the same code of a server is
   * (RTY-9).
   */
  public static ErrorInfo.Builder error(String code, String message) {
    return error(code, message, Origin.CLIENT);
  }

  /** The same, said by {@code origin}. */
  public static ErrorInfo.Builder error(String code, String message, Origin origin) {
    CodeInfo known = Registry.CODES.get(code);
    if (known == null) {
      throw new IllegalArgumentException(code);
    }
    RetryRule rule = origin == Origin.CLIENT ? known.retryOwnTimer() : known.retry();
    return new ErrorInfo.Builder(code, known.category(), known.outcome(), message, origin)
        .retryable(known.category() == Category.RETRYABLE && rule != RetryRule.NEVER);
  }

  /** The error of an answer that breaks the protocol: {@code value} is what should not be there. */
  static ErrorInfo malformed(String what, @Nullable Object value) {
    return error(Codes.MALFORMED_RESPONSE, what).raw(raw(Json.shown(value))).build();
  }

  /**
   * Classify an HTTP answer; null where it is a 2xx whose body does not have an error's shape.
   *
   * @param headers by lower-case names
   * @param body JSON of any dialect, text, HTML, cut short or empty
   * @param now to read a {@code Retry-After} that is a date
   */
  public static @Nullable ErrorInfo response(
      int status, Map<String, String> headers, byte[] body, Instant now) {
    String text = text(body);
    Object parsed;
    try {
      parsed = Json.parse(text);
    } catch (Json.NotJsonException e) {
      parsed = null;
    }
    Map<String, @Nullable Object> fields;
    if (200 <= status && status < 300) {
      fields = Envelopes.errorFields(parsed);
      if (fields == null) {
        return null;
      }
    } else {
      fields = Envelopes.anyFields(parsed);
      if (fields == null) {
        fields = Envelopes.messageOf(Envelopes.describeText(status, text));
        // an engine's errors are JSON
        fields.put("origin", Text.strip(text).isEmpty() ? "engine" : "gateway");
      }
      fields.put("http_status", status);
      String location = headers.getOrDefault("location", "");
      if (status < 400 && !location.isEmpty()) {
        fields.put(
            "message",
            "HTTP " + status + " sends the request elsewhere: set the base URL for " + location);
        fields.put("details", Map.of("location", location));
      }
    }
    return withHeaders(build(fields, text), headers, now);
  }

  /**
   * Classify one event of a stream, as parsed JSON or as text; null where it is no error.
   *
   * <p>An event named {@code error} is an error whatever it holds; an {@code error} member counts
   * whatever the event's name.
   */
  static @Nullable ErrorInfo frame(String event, @Nullable Object data) {
    Map<String, @Nullable Object> fields = Envelopes.errorFields(data);
    if (fields == null) {
      if (!event.equals("error")) {
        return null;
      }
      fields = Envelopes.anyFields(data);
      if (fields == null) {
        fields = Envelopes.messageOf("the server sent an error event that says nothing");
      }
    }
    return build(fields, Json.shown(data));
  }

  /** A body as text: UTF-8, a leading BOM dropped, what is none replaced. */
  public static String text(byte[] body) {
    String text = new String(body, StandardCharsets.UTF_8);
    return text.startsWith("\uFEFF") ? text.substring(1) : text;
  }

  /** What of a body is kept as {@link ErrorInfo#raw}. */
  public static String raw(byte[] body) {
    return raw(text(body));
  }

  /** What of a text is kept as {@link ErrorInfo#raw}: at most 4096 UTF-16 units. */
  public static String raw(String text) {
    return Text.cut(text, MAX_RAW);
  }

  /**
   * Whether {@code text} may be a request id: 1 to 128 letters, digits and {@code -_.:} (HDR-1).
   */
  public static boolean isRequestId(String text) {
    return REQUEST_ID.matcher(text).matches();
  }

  /** The request id of an answer, from the first of the field's headers that has one. */
  public static @Nullable String requestIdOf(Map<String, String> headers) {
    for (String name : REQUEST_ID_HEADERS) {
      String id = headers.get(name);
      if (id != null && !id.isEmpty()) {
        return id;
      }
    }
    return null;
  }

  private static ErrorInfo withHeaders(ErrorInfo info, Map<String, String> headers, Instant now) {
    String said = headers.getOrDefault("x-should-retry", "").strip().toLowerCase(Locale.ROOT);
    Boolean word =
        said.equals("true")
            ? Boolean.TRUE
            : said.equals("false") ? Boolean.FALSE : info.shouldRetry();
    String dropped =
        Registry.DROPPED_REASONS.get(
            headers.getOrDefault("x-llm-d-request-dropped-reason", "").strip());
    if (dropped != null) {
      info =
          error(dropped, info.message(), Origin.GATEWAY)
              .status(info.status())
              .raw(info.raw())
              .build();
    }
    Duration hint = RetryAfter.in(headers, now);
    String id = requestIdOf(headers);
    return info.toBuilder()
        .requestId(id != null ? id : info.requestId())
        .retryAfter(hint != null ? hint : info.retryAfter())
        .shouldRetry(word)
        .retryable(info.retryable() && !Boolean.FALSE.equals(word))
        .build();
  }

  private static ErrorInfo build(Map<String, @Nullable Object> fields, String raw) {
    // The body's own number goes first (CLS-2).
    Integer stated = (Integer) fields.get("status");
    if (stated == null) {
      stated = ErrorCode.statusIn(text(fields.get("code")));
    }
    Integer received = (Integer) fields.get("http_status");
    Integer decisive = stated != null ? stated : received;
    ErrorCode found = ErrorCode.of(fields, decisive);
    CodeInfo known = Registry.CODES.get(found.code());
    Category category =
        known != null ? known.category() : ErrorCode.categoryOfUnknown(fields, decisive);
    OutcomeName unknown =
        category == Category.CANCELLED ? OutcomeName.CANCELLED : OutcomeName.FAILED;
    OutcomeName outcome = known != null ? known.outcome() : unknown;
    Boolean shouldRetry = fields.get("retryable") instanceof Boolean flag ? flag : null;
    boolean refused = Boolean.FALSE.equals(shouldRetry) || found.unsure();
    return new ErrorInfo.Builder(
            found.code(),
            category,
            outcome,
            messageOf(fields, found),
            originOf(text(fields.get("origin"))))
        .retryable(category == Category.RETRYABLE && !refused)
        .type(text(fields.get("type")))
        .param(text(fields.get("param")))
        .status(received != null ? received : stated)
        .requestId(text(fields.get("request_id")))
        .retryAfter(RetryAfter.millis(fields.get("retry_after_ms")))
        .shouldRetry(shouldRetry)
        .details(detailsOf(fields, found))
        .raw(raw(raw))
        .build();
  }

  private static String messageOf(Map<String, @Nullable Object> fields, ErrorCode found) {
    String message = (String) fields.get("message");
    return message == null || message.isEmpty()
        ? "the server reported " + found.code() + " without a message"
        : Text.cut(message, MAX_RAW);
  }

  /** What was read out of the message; the body's own details go before it. */
  private static Map<String, @Nullable Object> detailsOf(
      Map<String, @Nullable Object> fields, ErrorCode found) {
    Map<String, @Nullable Object> details = new LinkedHashMap<>(found.details());
    Map<String, @Nullable Object> given = Json.object(fields.get("details"));
    if (given != null) {
      details.putAll(given);
    }
    return details;
  }

  static @Nullable Category categoryOf(@Nullable String word) {
    for (Category each : Category.values()) {
      if (each.word().equals(word)) {
        return each;
      }
    }
    return null;
  }

  private static Origin originOf(@Nullable String word) {
    for (Origin each : Origin.values()) {
      if (each.word().equals(word)) {
        return each;
      }
    }
    return Origin.ENGINE;
  }

  static @Nullable String text(@Nullable Object value) {
    return value == null
            || value instanceof Boolean
            || value instanceof Map
            || value instanceof List
        ? null
        : value.toString();
  }
}
