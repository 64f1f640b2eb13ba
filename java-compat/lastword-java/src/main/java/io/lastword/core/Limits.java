package io.lastword.core;

import java.time.Duration;

/**
 * How much of a body is read, and for how long, where no timer of the caller's says it; and what a
 * duration may be.
 */
public final class Limits {

  /** Bytes of an answer that is no stream. */
  public static final int ANSWER = 256 * 1024 * 1024;

  /** Bytes of an error's body; its status is known, and the body only explains it. */
  public static final int REFUSAL = 1024 * 1024;

  /** How long such a body may take. */
  public static final Duration REFUSAL_TIME = Duration.ofSeconds(3);

  /** Bytes behind the terminal event, read so that the connection can be used again (STR-9). */
  public static final int DRAIN = 64 * 1024;

  /** How long they may take. */
  public static final Duration DRAIN_TIME = Duration.ofMillis(100);

  /** No timer, delay or server's hint is longer: nanoseconds of it are a {@code long}. */
  public static final Duration LONGEST = Duration.ofSeconds(1_000_000_000);

  private Limits() {}
}
