package io.lastword.errors;

import io.lastword.Codes;
import io.lastword.Timer;

/** A timer fired; {@link #origin} says whose it was. */
public final class RequestTimeoutException extends LastwordException {
  private static final long serialVersionUID = 1L;

  RequestTimeoutException(Details given) {
    super(given);
  }

  /** Which timer. */
  public Timer timer() {
    return switch (code()) {
      case Codes.CONNECT_TIMEOUT -> Timer.CONNECT;
      case Codes.FIRST_TOKEN_TIMEOUT -> Timer.FIRST_TOKEN;
      case Codes.GENERATION_STALLED -> Timer.IDLE;
      default -> Timer.TOTAL;
    };
  }
}
