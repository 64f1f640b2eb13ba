package io.lastword.errors;

/** The server failed; the same request may succeed later. */
public sealed class ServerException extends LastwordException
    permits OverloadedException,
        RateLimitedException,
        EngineUnavailableException,
        GenerationAbortedException {
  private static final long serialVersionUID = 1L;

  ServerException(Details given) {
    super(given);
  }
}
