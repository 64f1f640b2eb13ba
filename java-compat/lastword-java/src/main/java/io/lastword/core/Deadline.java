package io.lastword.core;

import io.lastword.Codes;
import io.lastword.Timeouts;
import io.lastword.Timer;
import io.lastword.errors.ErrorInfo;
import java.math.BigDecimal;
import java.time.Duration;
import java.util.Map;
import org.jspecify.annotations.Nullable;

/**
 * The timers of one call. Pure: every time is passed in, in nanoseconds of one monotonic clock. Not
 * for several threads.
 */
public final class Deadline {

  /** No timer can fire. */
  public static final long NEVER = Long.MAX_VALUE;

  /**
   * The timer that fires next, and in how many nanoseconds ({@link #NEVER} if none can, 0 or less
   * if it is due).
   */
  public record Next(Timer timer, long nanos) {}

  private final Timeouts timeouts;
  private final boolean stream;
  private final long began;
  private long since; // the last content, or the attempt's start
  private boolean progressed;
  private long handed; // when the caller last got something
  private long callersNanos; // what the caller took since the last wait

  /** The timers of a call that begins {@code now}. */
  public Deadline(Timeouts timeouts, boolean stream, long now) {
    this.timeouts = timeouts;
    this.stream = stream;
    this.began = now;
    this.handed = now;
    attempt(now);
  }

  /** A new attempt begins: everything but {@code total} starts afresh. */
  public void attempt(long now) {
    progressed = false;
    since = now;
  }

  /** The caller has something of the stream, and is elsewhere until it asks for more. */
  public void handed(long now) {
    handed = now;
  }

  /** The caller asks for more. */
  public void asked(long now) {
    callersNanos += now - handed;
  }

  /**
   * More of the stream is waited for. Content that has come starts {@code idle} again. Else the
   * caller's own time is not counted; that of reading what the server sends is, or a flood of
   * comments would hold the timers up.
   */
  public void waits(StreamTracker tracker, long now) {
    if (tracker.takeProgress()) {
      progressed = true;
      since = now;
    } else {
      since += callersNanos;
    }
    callersNanos = 0;
  }

  /** The timer that fires next. */
  public Next next(long now) {
    Next total = new Next(Timer.TOTAL, left(now));
    Timer timer = progressed ? Timer.IDLE : Timer.FIRST_TOKEN;
    Duration limit = stream ? timeouts.of(timer) : null;
    long left = limit == null ? NEVER : limit.toNanos() - (now - since);
    return left < total.nanos ? new Next(timer, left) : total;
  }

  /** Nanoseconds until {@code total} fires; {@link #NEVER} if it is off. */
  public long left(long now) {
    Duration total = timeouts.total();
    return total == null ? NEVER : total.toNanos() - (now - began);
  }

  /** The same as a duration, null if it is off. */
  public @Nullable Duration remaining(long now) {
    long left = left(now);
    return left == NEVER ? null : Duration.ofNanos(left);
  }

  /** The error of a timer that has fired. */
  public static ErrorInfo fired(Timer timer, Timeouts timeouts) {
    Duration limit = timeouts.of(timer);
    double seconds = limit == null ? 0 : limit.toNanos() / 1e9;
    String said = BigDecimal.valueOf(seconds).stripTrailingZeros().toPlainString();
    String message = met(timer, said + " s") + " (limit: " + nameOf(timer) + ")";
    return Classifier.error(codeOf(timer), message)
        .details(Map.of(timer.word() + "_timeout_s", seconds))
        .build();
  }

  private static String codeOf(Timer timer) {
    return switch (timer) {
      case CONNECT -> Codes.CONNECT_TIMEOUT;
      case FIRST_TOKEN -> Codes.FIRST_TOKEN_TIMEOUT;
      case IDLE -> Codes.GENERATION_STALLED;
      case TOTAL -> Codes.DEADLINE_EXCEEDED;
    };
  }

  /** As {@link Timeouts} calls it. */
  private static String nameOf(Timer timer) {
    return timer == Timer.FIRST_TOKEN ? "firstToken" : timer.word();
  }

  private static String met(Timer timer, String limit) {
    return switch (timer) {
      case CONNECT -> "no connection within " + limit; // the transport may have rounded it up
      case FIRST_TOKEN -> "waited " + limit + " for the first content of the stream";
      case IDLE -> "waited " + limit + " for more content of the stream";
      case TOTAL -> "waited " + limit + " for the request to end";
    };
  }
}
