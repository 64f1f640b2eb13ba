package io.lastword.errors;

/**
 * Too many requests for this key; {@link #retryAfter} says how long to wait where the server knows.
 */
public final class RateLimitedException extends ServerException {
  private static final long serialVersionUID = 1L;

  RateLimitedException(Details given) {
    super(given);
  }
}
