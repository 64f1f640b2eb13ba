package io.lastword.errors;

/** The server's queue is full, or the request waited in it too long. */
public final class OverloadedException extends ServerException {
  private static final long serialVersionUID = 1L;

  OverloadedException(Details given) {
    super(given);
  }
}
