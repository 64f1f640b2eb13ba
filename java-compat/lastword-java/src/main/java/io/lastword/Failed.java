package io.lastword;

import io.lastword.errors.LastwordException;

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
}
