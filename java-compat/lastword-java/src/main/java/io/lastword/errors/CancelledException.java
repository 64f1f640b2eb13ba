package io.lastword.errors;

/** The request was stopped: closed, cancelled, interrupted or abandoned. */
public final class CancelledException extends LastwordException {
  private static final long serialVersionUID = 1L;

  CancelledException(Details given) {
    super(given);
  }
}
