package io.lastword;

import io.lastword.errors.LastwordException;
import java.util.List;
import java.util.Map;
import org.jspecify.annotations.Nullable;

/**
 * The caller, or someone on its behalf, stopped it.
 *
 * @param error what {@code create} would have thrown
 */
public record Cancelled(LastwordException error) implements Outcome {

  @Override
  public OutcomeName name() {
    return OutcomeName.CANCELLED;
  }

  @Override
  public @Nullable String requestId() {
    return error.requestId();
  }

  @Override
  public List<Attempt> attempts() {
    return error.attempts();
  }

  @Override
  public Map<Integer, @Nullable String> finishReasons() {
    return error.partial().finishReasons();
  }

  @Override
  public @Nullable Map<String, @Nullable Object> usage() {
    return error.partial().usage();
  }

  @Override
  public Completed orThrow() {
    throw error;
  }
}
