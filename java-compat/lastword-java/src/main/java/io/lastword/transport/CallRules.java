package io.lastword.transport;

import io.lastword.Profile;
import io.lastword.RetryPolicy;
import io.lastword.core.RetryBudget;
import org.jspecify.annotations.Nullable;

/** What calls are to keep to; the budget is shared by all that have the same rules. */
public record CallRules(RetryPolicy policy, RetryBudget budget, @Nullable Profile profile) {}
