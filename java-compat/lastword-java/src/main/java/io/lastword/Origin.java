package io.lastword;

import java.util.Locale;

/** Who says that a request failed. */
public enum Origin {
  /** This library: a timer, a cancellation, an answer that is not whole. */
  CLIENT,
  /** Something on the way: a proxy, a load balancer. */
  GATEWAY,
  /** lastword's shim in front of the engine. */
  SHIM,
  /** The server of the model. */
  ENGINE;

  /** The contract's word for it. */
  public String word() {
    return name().toLowerCase(Locale.ROOT);
  }
}
