package io.lastword.transport;

/**
 * A wait is over for a reason of this side's: a timer has fired or the call was cancelled; the
 * guard knows which.
 */
final class Stopped extends Exception {
  private static final long serialVersionUID = 1L;

  Stopped() {
    super(null, null, false, false);
  }
}
