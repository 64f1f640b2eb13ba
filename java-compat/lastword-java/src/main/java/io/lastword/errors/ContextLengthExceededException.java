package io.lastword.errors;

import java.math.BigDecimal;
import java.util.OptionalLong;

/**
 * Prompt and answer do not fit together; the numbers are those that the server gave, some or all of
 * them. {@link #details} has each as it came, one that no {@code long} can hold included.
 */
public final class ContextLengthExceededException extends RequestException {
  private static final long serialVersionUID = 1L;

  ContextLengthExceededException(Details given) {
    super(given);
  }

  /** Tokens of the prompt; empty where the server does not say. */
  public OptionalLong promptTokens() {
    return number("prompt_tokens");
  }

  /** Tokens of answer that were asked for; empty where the server does not say. */
  public OptionalLong maxTokens() {
    return number("max_tokens");
  }

  /** Tokens that prompt and answer may have together; empty where the server does not say. */
  public OptionalLong maxModelLen() {
    return number("max_model_len");
  }

  private OptionalLong number(String name) {
    if (!(details().get(name) instanceof Number number)) {
      return OptionalLong.empty();
    }
    try {
      return OptionalLong.of(new BigDecimal(number.toString()).longValueExact());
    } catch (ArithmeticException | NumberFormatException e) { // 10³⁰, 0.5 or NaN: none of tokens
      return OptionalLong.empty();
    }
  }
}
