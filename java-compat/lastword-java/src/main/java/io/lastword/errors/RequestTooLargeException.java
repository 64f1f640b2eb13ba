package io.lastword.errors;

/** The body is larger than the server accepts. */
public final class RequestTooLargeException extends RequestException {
  private static final long serialVersionUID = 1L;

  RequestTooLargeException(Details given) {
    super(given);
  }
}
