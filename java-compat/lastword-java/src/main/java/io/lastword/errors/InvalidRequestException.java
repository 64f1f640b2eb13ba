package io.lastword.errors;

/** The server cannot read or does not accept the request as it is. */
public final class InvalidRequestException extends RequestException {
  private static final long serialVersionUID = 1L;

  InvalidRequestException(Details given) {
    super(given);
  }
}
