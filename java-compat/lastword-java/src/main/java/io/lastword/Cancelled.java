package io.lastword;

import io.lastword.errors.LastwordException;

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
}
