package io.lastword.errors;

/**
 * Prompt and answer do not fit; {@link #details} has prompt_tokens, max_tokens and max_model_len
 * where known.
 */
public final class ContextLengthExceededException extends RequestException {
  private static final long serialVersionUID = 1L;

  ContextLengthExceededException(Details given) {
    super(given);
  }
}
