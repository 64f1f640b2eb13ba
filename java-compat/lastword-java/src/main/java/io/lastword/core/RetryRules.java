package io.lastword.core;

import io.lastword.Category;
import io.lastword.Codes;
import io.lastword.Origin;
import io.lastword.RetryPolicy;
import io.lastword.core.Registry.CodeInfo;
import io.lastword.core.Registry.RetryRule;
import io.lastword.errors.ErrorInfo;
import java.time.Duration;
import java.util.Locale;
import java.util.Set;
import org.jspecify.annotations.Nullable;

/** What the registry says of sending a request again after a code, and what that costs. */
final class RetryRules {
  static final Set<String> TIMEOUTS =
      Set.of(Codes.CONNECT_TIMEOUT, Codes.FIRST_TOKEN_TIMEOUT, Codes.GENERATION_STALLED);
  static final int COST = 5;
  static final int TIMEOUT_COST = 10;

  private static final String NOT_CURED = " is not cured by sending the same request again";

  private RetryRules() {}

  static @Nullable String refusal(ErrorInfo error, int attempt, RetryPolicy policy) {
    CodeInfo known = Registry.CODES.get(error.code());
    RetryRule rule;
    if (known == null) {
      // ERR-6: only the category of the body may speak for a code nobody here knows
      rule = error.category() == Category.RETRYABLE ? RetryRule.LIMITED : RetryRule.NEVER;
    } else {
      rule = error.origin() == Origin.CLIENT ? known.retryOwnTimer() : known.retry();
    }
    int limit =
        switch (rule) {
          case NEVER, CALLER -> 0;
          case ONCE -> Math.min(policy.maxAttempts(), 2);
          case AFTER_HINT, BACKOFF, LIMITED, IF_UNDELIVERED -> policy.maxAttempts();
        };
    if (limit == 0) {
      return error.code() + NOT_CURED;
    }
    if (!error.retryable() && error.origin() == Origin.CLIENT) {
      return "this" + NOT_CURED;
    }
    if (!error.retryable() || Boolean.FALSE.equals(error.shouldRetry())) {
      return "the server says that a retry does not help";
    }
    return attempt >= limit ? attempt + " of " + limit + " attempts made" : null;
  }

  static double of(Duration duration) {
    return duration.getSeconds() + duration.getNano() / 1e9; // toNanos ends after 292 years
  }

  static String seconds(Duration duration) {
    return String.format(Locale.ROOT, "%.3g", of(duration));
  }
}
