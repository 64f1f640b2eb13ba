package io.lastword.errors;

/** A limit that waiting does not cure. */
public final class QuotaExceededException extends RequestException {
  private static final long serialVersionUID = 1L;

  QuotaExceededException(Details given) {
    super(given);
  }
}
