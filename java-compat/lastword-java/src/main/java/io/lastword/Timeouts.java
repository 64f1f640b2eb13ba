package io.lastword;

import io.lastword.core.Limits;
import java.time.Duration;
import org.jspecify.annotations.Nullable;

/**
 * The limits of a call; null switches a timer off.
 *
 * <p>{@code firstToken} and {@code idle} run on streams; a call without a stream has {@code
 * connect} and {@code total}. Comments, role-only chunks and empty deltas are no content. Time that
 * the caller spends between two chunks counts for {@code total} only: it is not the server's
 * silence. The timers run in the thread that waits, so a {@code total} that passes while the caller
 * is away ends the call when it asks for the next chunk.
 *
 * @param connect opening a connection, TCP and TLS; 5 s by default. The JDK has a client for each
 *     limit: after eight different ones a client rounds others up to a power of two milliseconds
 * @param firstToken from the attempt's start to the stream's first content; 120 s by default
 * @param idle from one piece of content to the next; 60 s by default
 * @param total the whole call, every attempt and wait included; 600 s by default
 */
public record Timeouts(
    @Nullable Duration connect,
    @Nullable Duration firstToken,
    @Nullable Duration idle,
    @Nullable Duration total) {

  private static final Timeouts DEFAULTS =
      new Timeouts(
          Duration.ofSeconds(5),
          Duration.ofSeconds(120),
          Duration.ofSeconds(60),
          Duration.ofSeconds(600));

  /**
   * Checks them.
   *
   * @throws IllegalArgumentException for one that is not above zero, or longer than 10⁹ s
   */
  public Timeouts {
    check("connect", connect);
    check("firstToken", firstToken);
    check("idle", idle);
    check("total", total);
  }

  /** 5 s to connect, 120 s to the first token, 60 s between two, 600 s in all. */
  public static Timeouts defaults() {
    return DEFAULTS;
  }

  /** No limit at all. */
  public static Timeouts none() {
    return new Timeouts(null, null, null, null);
  }

  /** These with another limit for connecting. */
  public Timeouts withConnect(@Nullable Duration value) {
    return new Timeouts(value, firstToken, idle, total);
  }

  /** These with another limit for the first token. */
  public Timeouts withFirstToken(@Nullable Duration value) {
    return new Timeouts(connect, value, idle, total);
  }

  /** These with another limit between two pieces of content. */
  public Timeouts withIdle(@Nullable Duration value) {
    return new Timeouts(connect, firstToken, value, total);
  }

  /** These with another limit for the whole call. */
  public Timeouts withTotal(@Nullable Duration value) {
    return new Timeouts(connect, firstToken, idle, value);
  }

  /** The limit of one timer. */
  public @Nullable Duration of(Timer timer) {
    return switch (timer) {
      case CONNECT -> connect;
      case FIRST_TOKEN -> firstToken;
      case IDLE -> idle;
      case TOTAL -> total;
    };
  }

  private static void check(String name, @Nullable Duration value) {
    if (value != null
        && (value.isZero() || value.isNegative() || value.compareTo(Limits.LONGEST) > 0)) {
      throw new IllegalArgumentException(
          "Timeouts."
              + name
              + " is "
              + value
              + ": give more than nothing and up to 1e9 seconds, or null to switch it off");
    }
  }
}
