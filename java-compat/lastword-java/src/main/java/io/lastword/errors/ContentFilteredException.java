package io.lastword.errors;

/** The provider's filter refused the prompt. */
public final class ContentFilteredException extends RequestException {
  private static final long serialVersionUID = 1L;

  ContentFilteredException(Details given) {
    super(given);
  }
}
