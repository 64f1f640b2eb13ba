package io.lastword;

import io.lastword.errors.LastwordException;
import java.util.List;
import java.util.Map;
import org.jspecify.annotations.Nullable;

/**
 * The server said so, a timer fired, or the server could not be reached.
 *
 * @param error what {@code create} would have thrown
 */
public record Failed(LastwordException error) implements Outcome {

  @Override
  public OutcomeName name() {
    return OutcomeName.FAILED;
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
