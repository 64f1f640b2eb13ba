package io.lastword.core;

import io.lastword.RetryPolicy;
import io.lastword.errors.ErrorInfo;
import java.time.Duration;
import java.util.function.DoubleSupplier;
import org.jspecify.annotations.Nullable;

/**
 * Whether to send a request again, and when. Pure: budget, time and randomness are passed in.
 *
 * <p>It goes by the contract's code, never by HTTP status or exception class (the RTY rules).
 */
public sealed interface RetryDecision {

  /** Send it again after {@code delay}; {@code cost} was taken from the budget. */
  record Retry(Duration delay, int cost) implements RetryDecision {}

  /** Do not send it again; {@code reason} says why, for {@code LastwordException.notRetried}. */
  record GiveUp(String reason) implements RetryDecision {}

  /**
   * Decide after attempt number {@code attempt} (1, 2, …) met {@code error}.
   *
   * @param delivered whether a chunk has reached the caller (the commit point, RTY-1)
   * @param left until the call's deadline; null without one
   * @param random gives a number from 0 to below 1
   */
  static RetryDecision after(
      ErrorInfo error,
      int attempt,
      boolean delivered,
      @Nullable Duration left,
      RetryPolicy policy,
      RetryBudget budget,
      DoubleSupplier random) {
    if (delivered) {
      return new GiveUp("part of the answer has been handed over");
    }
    String refusal = RetryRules.refusal(error, attempt, policy);
    if (refusal != null) {
      return new GiveUp(refusal);
    }
    Duration hint = error.retryAfter() == null ? Duration.ZERO : error.retryAfter();
    if (hint.compareTo(policy.maxHint()) > 0) {
      return new GiveUp(
          "the server asks to wait " + RetryRules.seconds(hint) + " s, more than maxHint allows");
    }
    double ceiling =
        Math.min(
            RetryRules.of(policy.maxDelay()),
            RetryRules.of(policy.baseDelay()) * Math.pow(2, Math.min(attempt - 1, 32)));
    Duration backOff = Duration.ofNanos(Math.round(random.getAsDouble() * ceiling * 1e9));
    Duration delay = hint.compareTo(backOff) > 0 ? hint : backOff;
    if (left != null && delay.compareTo(left) >= 0) {
      String away = left.isNegative() ? "past" : RetryRules.seconds(left) + " s away";
      return new GiveUp(
          "a wait of "
              + RetryRules.seconds(delay)
              + " s would outlast the deadline, which is "
              + away);
    }
    int cost =
        RetryRules.TIMEOUTS.contains(error.code()) ? RetryRules.TIMEOUT_COST : RetryRules.COST;
    return budget.take(cost)
        ? new Retry(delay, cost)
        : new GiveUp("the client's retry budget is spent");
  }
}
