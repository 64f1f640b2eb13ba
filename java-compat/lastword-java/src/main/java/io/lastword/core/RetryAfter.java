package io.lastword.core;

import java.time.Duration;
import java.time.Instant;
import java.util.Map;
import java.util.regex.Pattern;
import org.jspecify.annotations.Nullable;

/** How long a server asks to wait. */
final class RetryAfter {

  private static final int LONGEST_NUMBER = 64; // characters
  private static final Pattern NUMBER =
      Pattern.compile("\\+?(\\d+\\.?\\d*|\\.\\d+)([eE][+-]?\\d+)?");

  private RetryAfter() {}

  /**
   * The server's hint: {@code retry-after-ms}, else {@code retry-after} as a number or an HTTP date
   * (RFC 9110 §10.2.3); null where there is none that can be read.
   */
  static @Nullable Duration in(Map<String, String> headers, Instant now) {
    Duration hint = millis(headers.get("retry-after-ms"));
    if (hint != null) {
      return hint;
    }
    String text = headers.getOrDefault("retry-after", "").strip();
    Double seconds = number(text);
    if (seconds != null) {
      return seconds(seconds);
    }
    Instant date = HttpDate.parse(text, now);
    return date == null
        ? null
        : date.isBefore(now) ? Duration.ZERO : capped(Duration.between(now, date));
  }

  /** Milliseconds as a header or a body has them; null where that is no number. */
  static @Nullable Duration millis(@Nullable Object value) {
    Double milliseconds = number(value);
    return milliseconds == null ? null : seconds(milliseconds / 1000);
  }

  /** A finite number that is not negative, from JSON or a header. */
  private static @Nullable Double number(@Nullable Object value) {
    Double number = null;
    if (value instanceof Number given) {
      number = given.doubleValue();
    } else if (value instanceof String text
        && text.length() < LONGEST_NUMBER
        && NUMBER.matcher(text.strip()).matches()) {
      number = Double.valueOf(text.strip());
    }
    return number != null && Double.isFinite(number) && number >= 0 ? number : null;
  }

  private static Duration capped(Duration hint) {
    return hint.compareTo(Limits.LONGEST) > 0 ? Limits.LONGEST : hint;
  }

  private static Duration seconds(double seconds) {
    return capped(Duration.ofNanos(Math.round(Math.min(seconds, 2e9) * 1e9)));
  }
}
