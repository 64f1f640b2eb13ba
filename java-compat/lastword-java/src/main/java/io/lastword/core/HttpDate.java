package io.lastword.core;

import java.time.DateTimeException;
import java.time.Instant;
import java.time.OffsetDateTime;
import java.time.ZoneOffset;
import java.util.List;
import java.util.Locale;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import org.jspecify.annotations.Nullable;

/**
 * An HTTP date in any of its three forms (RFC 9110 §5.6.7), read as loosely as servers write them:
 * the weekday says nothing.
 */
final class HttpDate {

  private static final List<String> MONTHS =
      List.of("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec");
  // Sun, 06 Nov 1994 08:49:37 GMT, and Sunday, 06-Nov-94 08:49:37 GMT
  private static final Pattern DAY_FIRST =
      Pattern.compile(
          "(?:[A-Za-z]{3,9},? )?(\\d{1,2})[ -]([A-Za-z]{3})[ -](\\d{2}|\\d{4}) (\\d\\d):(\\d\\d):(\\d\\d) (GMT|UTC|Z|[+-]\\d{4})");
  // Sun Nov  6 08:49:37 1994
  private static final Pattern MONTH_FIRST =
      Pattern.compile(
          "[A-Za-z]{3} ([A-Za-z]{3}) {1,2}(\\d{1,2}) (\\d\\d):(\\d\\d):(\\d\\d) (\\d{4})");

  private HttpDate() {}

  /**
   * The instant; null if {@code text} is no date.
   *
   * @param now tells the century of a year of two digits
   */
  static @Nullable Instant parse(String text, Instant now) {
    Matcher dayFirst = DAY_FIRST.matcher(text);
    Matcher monthFirst = MONTH_FIRST.matcher(text);
    try {
      if (dayFirst.matches()) {
        String zone = dayFirst.group(7);
        int year = year(Integer.parseInt(dayFirst.group(3)), now);
        return of(year, dayFirst.group(2), dayFirst.group(1), dayFirst, 4, zone);
      }
      if (monthFirst.matches()) {
        int year = Integer.parseInt(monthFirst.group(6));
        return of(year, monthFirst.group(1), monthFirst.group(2), monthFirst, 3, "Z");
      }
      return null;
    } catch (DateTimeException e) { // the 32nd of a month
      return null;
    }
  }

  private static Instant of(
      int year, String month, String day, Matcher found, int time, String zone) {
    ZoneOffset offset = zone.matches("[+-].*") ? ZoneOffset.of(zone) : ZoneOffset.UTC;
    return OffsetDateTime.of(
            year,
            MONTHS.indexOf(month.toLowerCase(Locale.ROOT)) + 1,
            Integer.parseInt(day),
            Integer.parseInt(found.group(time)),
            Integer.parseInt(found.group(time + 1)),
            Math.min(Integer.parseInt(found.group(time + 2)), 59), // a leap second
            0,
            offset)
        .toInstant();
  }

  /** Two digits that seem to be more than 50 years ahead are of the last century. */
  private static int year(int given, Instant now) {
    if (given > 99) {
      return given;
    }
    int current = now.atOffset(ZoneOffset.UTC).getYear();
    int year = current - current % 100 + given;
    return year > current + 50 ? year - 100 : year;
  }
}
