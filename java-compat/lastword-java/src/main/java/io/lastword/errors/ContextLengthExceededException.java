package io.lastword.errors;

import java.util.OptionalInt;

/**
 * Prompt and answer do not fit together; the numbers are those that the server gave, some or all of
 * them.
 */
public final class ContextLengthExceededException extends RequestException {
  private static final long serialVersionUID = 1L;

  ContextLengthExceededException(Details given) {
    super(given);
  }

  /** Tokens of the prompt; empty where the server does not say. */
  public OptionalInt promptTokens() {
    return number("prompt_tokens");
  }

  /** Tokens of answer that were asked for; empty where the server does not say. */
  public OptionalInt maxTokens() {
    return number("max_tokens");
  }

  /** Tokens that prompt and answer may have together; empty where the server does not say. */
  public OptionalInt maxModelLen() {
    return number("max_model_len");
  }

  private OptionalInt number(String name) {
    return details().get(name) instanceof Number number
        ? OptionalInt.of(number.intValue())
        : OptionalInt.empty();
  }
}
