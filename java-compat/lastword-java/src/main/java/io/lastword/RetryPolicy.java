package io.lastword;

import io.lastword.core.Limits;
import java.time.Duration;
import java.util.Objects;
import org.jspecify.annotations.Nullable;

/**
 * How often and how patiently to send a request again.
 *
 * <p>Waits are drawn from 0 to {@code min(maxDelay, baseDelay × 2ⁿ)} (full jitter) and are never
 * shorter than the server's hint. The budget is shared by all calls of a client: a retry costs 5 of
 * it, 10 after a timeout, and a success gives back 1 or what its retry cost (the token bucket of
 * the AWS SDKs' standard mode).
 *
 * @param maxAttempts the first try included; 3 by default
 * @param baseDelay 0.5 s by default
 * @param maxDelay 8 s by default
 * @param maxHint a hint of the server above this ends the call; 120 s by default
 * @param budget 500 by default; null is no limit
 */
public record RetryPolicy(
    int maxAttempts,
    Duration baseDelay,
    Duration maxDelay,
    Duration maxHint,
    @Nullable Integer budget) {

  private static final RetryPolicy DEFAULTS =
      new RetryPolicy(
          3, Duration.ofMillis(500), Duration.ofSeconds(8), Duration.ofSeconds(120), 500);

  /**
   * Checks it.
   *
   * @throws IllegalArgumentException for less than one attempt, a wait that is negative or above
   *     10⁹ s, or a negative budget
   */
  public RetryPolicy {
    if (maxAttempts < 1) {
      throw new IllegalArgumentException(
          "RetryPolicy.maxAttempts is " + maxAttempts + ": give 1 (no retry) or more");
    }
    check("baseDelay", baseDelay);
    check("maxDelay", maxDelay);
    check("maxHint", maxHint);
    if (budget != null && budget < 0) {
      throw new IllegalArgumentException(
          "RetryPolicy.budget is " + budget + ": give 0 or more, or null for no limit");
    }
  }

  /** Three attempts, waits from 0.5 to 8 s, hints up to two minutes, a budget of 500. */
  public static RetryPolicy defaults() {
    return DEFAULTS;
  }

  /** One attempt. */
  public static RetryPolicy never() {
    return DEFAULTS.withMaxAttempts(1);
  }

  /** This with another number of attempts, the first one included. */
  public RetryPolicy withMaxAttempts(int value) {
    return new RetryPolicy(value, baseDelay, maxDelay, maxHint, budget);
  }

  /**
   * This with other waits: the first one is drawn up to {@code base}, no later one above {@code
   * max}.
   */
  public RetryPolicy withDelays(Duration base, Duration max) {
    return new RetryPolicy(maxAttempts, base, max, maxHint, budget);
  }

  /** This with another bound for what the server asks to wait. */
  public RetryPolicy withMaxHint(Duration value) {
    return new RetryPolicy(maxAttempts, baseDelay, maxDelay, value, budget);
  }

  /** This with another budget; null is no limit. */
  public RetryPolicy withBudget(@Nullable Integer value) {
    return new RetryPolicy(maxAttempts, baseDelay, maxDelay, maxHint, value);
  }

  private static void check(String name, Duration value) {
    Objects.requireNonNull(value, name);
    if (value.isNegative() || value.compareTo(Limits.LONGEST) > 0) {
      throw new IllegalArgumentException(
          "RetryPolicy." + name + " is " + value + ": give 0 to 1e9 seconds");
    }
  }
}
