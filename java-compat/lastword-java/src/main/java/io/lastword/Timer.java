package io.lastword;

import java.util.Locale;

/** The four timers of a request (the TMR rules). */
public enum Timer {
  /** Opening the connection, TCP and TLS; looking the name up is under the other timers. */
  CONNECT,
  /** From the attempt's start to the first content of a stream. */
  FIRST_TOKEN,
  /** From one piece of a stream's content to the next. */
  IDLE,
  /** The whole call: every attempt and every wait between them. */
  TOTAL;

  /** The contract's word for it. */
  public String word() {
    return name().toLowerCase(Locale.ROOT);
  }
}
