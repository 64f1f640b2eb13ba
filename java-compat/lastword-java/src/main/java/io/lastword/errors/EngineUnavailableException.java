package io.lastword.errors;

/** Not serving: loading, draining, out of memory or dead. */
public final class EngineUnavailableException extends ServerException {
  private static final long serialVersionUID = 1L;

  EngineUnavailableException(Details given) {
    super(given);
  }
}
