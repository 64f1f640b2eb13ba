package io.lastword;

import io.lastword.errors.LastwordException;
import java.util.List;
import java.util.Map;
import org.jspecify.annotations.Nullable;

/**
 * The answer began and never said that it was complete, or what came cannot be read; what was
 * received is in the error's {@code partial}.
 *
 * @param error what {@code create} would have thrown
 */
public record Incomplete(LastwordException error) implements Outcome {

  @Override
  public OutcomeName name() {
    return OutcomeName.INCOMPLETE;
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
