package io.lastword.transport;

import io.lastword.errors.ErrorInfo;
import org.jspecify.annotations.Nullable;

/**
 * What an attempt ended in. Inside only: where a call ends it becomes a {@code LastwordException},
 * with the caller's trace.
 */
public final class Failure extends Exception {
  private static final long serialVersionUID = 1L;

  private final ErrorInfo info;

  Failure(ErrorInfo info, @Nullable Throwable cause) {
    super(info.message(), cause, false, false);
    this.info = info;
  }

  /** It, classified. */
  public ErrorInfo info() {
    return info;
  }
}
