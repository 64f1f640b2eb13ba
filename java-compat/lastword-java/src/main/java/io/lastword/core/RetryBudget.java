package io.lastword.core;

import org.jspecify.annotations.Nullable;

/**
 * Retries that a client may still spend over all its calls (RTY-10). Safe to share between threads.
 */
public final class RetryBudget {

  private static final int REFUND = 1;

  private final @Nullable Integer capacity;
  private int left;

  /** A full budget; null is no limit. */
  public RetryBudget(@Nullable Integer capacity) {
    this.capacity = capacity;
    this.left = capacity == null ? 0 : capacity;
  }

  /** Spend {@code cost} if there is enough. */
  synchronized boolean take(int cost) {
    if (capacity == null) {
      return true;
    }
    if (left < cost) {
      return false;
    }
    left -= cost;
    return true;
  }

  /** A call succeeded; {@code cost} is what its last retry took, 0 if it needed none. */
  public synchronized void refund(int cost) {
    if (capacity != null) {
      left = (int) Math.min(capacity, (long) left + Math.max(cost, REFUND));
    }
  }
}
