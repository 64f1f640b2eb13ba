package io.lastword.errors;

/** The server was not reached, or closed the connection before it answered. */
public final class ConnectionFailedException extends LastwordException {
  private static final long serialVersionUID = 1L;

  ConnectionFailedException(Details given) {
    super(given);
  }
}
