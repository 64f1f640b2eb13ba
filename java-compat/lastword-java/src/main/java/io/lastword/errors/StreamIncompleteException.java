package io.lastword.errors;

/** The answer is not proven whole, or cannot be read; {@link #partial} has what came. */
public final class StreamIncompleteException extends LastwordException {
  private static final long serialVersionUID = 1L;

  StreamIncompleteException(Details given) {
    super(given);
  }
}
