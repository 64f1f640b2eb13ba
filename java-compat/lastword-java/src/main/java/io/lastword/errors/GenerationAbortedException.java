package io.lastword.errors;

/** The engine gave up this request while it was running. */
public final class GenerationAbortedException extends ServerException {
  private static final long serialVersionUID = 1L;

  GenerationAbortedException(Details given) {
    super(given);
  }
}
