package io.lastword;

import io.lastword.errors.LastwordException;

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
}
