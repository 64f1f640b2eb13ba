package io.lastword.errors;

/** The key is missing or wrong. */
public final class AuthenticationException extends RequestException {
  private static final long serialVersionUID = 1L;

  AuthenticationException(Details given) {
    super(given);
  }
}
