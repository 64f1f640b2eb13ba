package io.lastword.errors;

/** The request must change before it can succeed. */
public sealed class RequestException extends LastwordException
    permits InvalidRequestException,
        ContextLengthExceededException,
        AuthenticationException,
        PermissionDeniedException,
        NotFoundException,
        RequestTooLargeException,
        ContentFilteredException,
        QuotaExceededException {
  private static final long serialVersionUID = 1L;

  RequestException(Details given) {
    super(given);
  }
}
