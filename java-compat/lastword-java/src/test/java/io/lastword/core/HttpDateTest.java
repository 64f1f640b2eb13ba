package io.lastword.core;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNull;

import java.time.Duration;
import java.time.Instant;
import java.util.Map;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/** HTTP dates, whose century depends on the time that is passed in. */
@Timeout(30)
class HttpDateTest {

  @Test
  void aYearOfTwoDigitsIsWithinFiftyYearsOfNow() {
    String text = "Sunday, 06-Nov-94 08:49:37 GMT";
    assertEquals(
        Instant.parse("1994-11-06T08:49:37Z"),
        HttpDate.parse(text, Instant.parse("2026-01-01T00:00:00Z")));
    assertEquals(
        Instant.parse("2094-11-06T08:49:37Z"),
        HttpDate.parse(text, Instant.parse("2044-01-01T00:00:00Z")));
  }

  @Test
  void aYearOfFourDigitsNeedsNoNow() {
    Instant date = Instant.parse("1994-11-06T08:49:37Z");
    for (String text :
        new String[] {
          "Sun, 06 Nov 1994 08:49:37 GMT", "06 Nov 1994 09:49:37 +0100", "Sun Nov  6 08:49:37 1994"
        }) {
      assertEquals(date, HttpDate.parse(text, Instant.EPOCH), text);
    }
    assertNull(HttpDate.parse("Sun, 32 Nov 1994 08:49:37 GMT", Instant.EPOCH));
  }

  @Test
  void aHintIsCountedFromTheTimeThatIsPassedIn() {
    Map<String, String> headers = Map.of("retry-after", "Wednesday, 01-Jan-20 00:00:30 GMT");
    assertEquals(
        Duration.ofSeconds(30), RetryAfter.in(headers, Instant.parse("2020-01-01T00:00:00Z")));
    assertEquals(
        Duration.ofSeconds(30), // of 1920
        RetryAfter.in(headers, Instant.parse("1920-01-01T00:00:00Z")));
  }
}
