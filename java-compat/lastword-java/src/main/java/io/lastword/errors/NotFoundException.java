package io.lastword.errors;

/** No such model or route. */
public final class NotFoundException extends RequestException {
  private static final long serialVersionUID = 1L;

  NotFoundException(Details given) {
    super(given);
  }
}
