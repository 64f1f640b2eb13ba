package io.lastword.errors;

/** The key is known and may not do this. */
public final class PermissionDeniedException extends RequestException {
  private static final long serialVersionUID = 1L;

  PermissionDeniedException(Details given) {
    super(given);
  }
}
