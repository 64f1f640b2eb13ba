package io.lastword.errors;

import io.lastword.Attempt;
import io.lastword.Category;
import io.lastword.Codes;
import io.lastword.Origin;
import io.lastword.OutcomeName;
import io.lastword.Partial;
import io.lastword.core.Registry;
import java.time.Duration;
import java.util.List;
import java.util.Map;
import java.util.StringJoiner;
import org.jspecify.annotations.Nullable;

/**
 * A request that did not complete. Unchecked, and named for what the caller can do:
 *
 * <pre>
 * LastwordException
 * ├── RequestException               fixable: change the request, the key or the address
 * │   ├── InvalidRequestException        invalid_request_error, method_not_allowed, not_implemented
 * │   ├── ContextLengthExceededException context_length_exceeded; the numbers are in details()
 * │   ├── AuthenticationException        unauthorized
 * │   ├── PermissionDeniedException      permission_denied
 * │   ├── NotFoundException              model_not_found, not_found
 * │   ├── RequestTooLargeException       request_too_large
 * │   ├── ContentFilteredException       content_filtered
 * │   └── QuotaExceededException         quota_exceeded
 * ├── ServerException                retryable: the same request may succeed later
 * │   ├── OverloadedException            queue_overloaded, queue_timeout
 * │   ├── RateLimitedException           rate_limit_exceeded
 * │   ├── EngineUnavailableException     engine_unavailable, model_loading, server_shutting_down, out_of_memory
 * │   └── GenerationAbortedException     generation_aborted
 * ├── StreamIncompleteException      the answer is not proven whole, or cannot be read: stream_incomplete,
 * │                                  malformed_response, unknown_finish_reason
 * ├── RequestTimeoutException        a timer fired, the client's or the server's; timer() says which
 * ├── ConnectionFailedException      the server was not reached, or hung up before it answered
 * ├── CancelledException             somebody stopped the request
 * └── InvalidToolArgumentsException  the model wrote tool-call arguments that are no JSON object
 * </pre>
 *
 * <p>A code of a newer contract comes as {@link RequestException}, {@link ServerException} or
 * {@link CancelledException}, by its category.
 */
public abstract sealed class LastwordException extends RuntimeException
    permits RequestException,
        ServerException,
        StreamIncompleteException,
        RequestTimeoutException,
        ConnectionFailedException,
        CancelledException,
        InvalidToolArgumentsException {

  private static final long serialVersionUID = 1L;

  private final ErrorInfo info;
  private final Partial partial;

  @SuppressWarnings("serial") // List.copyOf makes one that is serializable
  private final List<Attempt> attempts;

  private final @Nullable String notRetried;

  LastwordException(Details given) {
    super(given.info.message(), given.cause);
    this.info = given.info;
    this.partial = given.partial;
    this.attempts = List.copyOf(given.attempts);
    this.notRetried = given.notRetried;
  }

  /** What every exception is made of. */
  record Details(
      ErrorInfo info,
      Partial partial,
      List<Attempt> attempts,
      @Nullable Throwable cause,
      @Nullable String notRetried) {}

  /**
   * The exception for a classified failure; a code without a class of its own takes its category's.
   */
  public static LastwordException of(
      ErrorInfo info, Partial partial, List<Attempt> attempts, @Nullable Throwable cause) {
    return of(info, partial, attempts, cause, null);
  }

  /** The same, with what {@link #notRetried} is to say. */
  public static LastwordException of(
      ErrorInfo info,
      Partial partial,
      List<Attempt> attempts,
      @Nullable Throwable cause,
      @Nullable String notRetried) {
    return of(new Details(info, partial, attempts, cause, notRetried));
  }

  private static LastwordException of(Details given) {
    ErrorInfo info = given.info;
    return switch (info.code()) {
      case Codes.INVALID_REQUEST_ERROR, Codes.METHOD_NOT_ALLOWED, Codes.NOT_IMPLEMENTED ->
          new InvalidRequestException(given);
      case Codes.CONTEXT_LENGTH_EXCEEDED -> new ContextLengthExceededException(given);
      case Codes.UNAUTHORIZED -> new AuthenticationException(given);
      case Codes.PERMISSION_DENIED -> new PermissionDeniedException(given);
      case Codes.MODEL_NOT_FOUND, Codes.NOT_FOUND -> new NotFoundException(given);
      case Codes.REQUEST_TOO_LARGE -> new RequestTooLargeException(given);
      case Codes.CONTENT_FILTERED -> new ContentFilteredException(given);
      case Codes.QUOTA_EXCEEDED -> new QuotaExceededException(given);
      case Codes.QUEUE_OVERLOADED, Codes.QUEUE_TIMEOUT -> new OverloadedException(given);
      case Codes.RATE_LIMIT_EXCEEDED -> new RateLimitedException(given);
      case Codes.ENGINE_UNAVAILABLE,
          Codes.MODEL_LOADING,
          Codes.SERVER_SHUTTING_DOWN,
          Codes.OUT_OF_MEMORY ->
          new EngineUnavailableException(given);
      case Codes.GENERATION_ABORTED -> new GenerationAbortedException(given);
      case Codes.STREAM_INCOMPLETE, Codes.MALFORMED_RESPONSE, Codes.UNKNOWN_FINISH_REASON ->
          new StreamIncompleteException(given);
      case Codes.CONNECTION_FAILED -> new ConnectionFailedException(given);
      case Codes.CONNECT_TIMEOUT,
          Codes.FIRST_TOKEN_TIMEOUT,
          Codes.GENERATION_STALLED,
          Codes.GENERATION_TIMEOUT,
          Codes.DEADLINE_EXCEEDED ->
          new RequestTimeoutException(given);
      default ->
          switch (info.category()) {
            case FIXABLE -> new RequestException(given);
            case RETRYABLE -> new ServerException(given);
            case CANCELLED -> new CancelledException(given);
          };
    };
  }

  /** The contract's code (see {@link Codes}), or that of a newer contract. */
  public final String code() {
    return info.code();
  }

  /** Who can do something about it. */
  public final Category category() {
    return info.category();
  }

  /**
   * Whether the same request may succeed later. It does not ask what has been handed over or how
   * often it was tried: see {@link #partial} and {@link #attempts}.
   */
  public final boolean retryable() {
    return info.retryable();
  }

  /** Failed, incomplete or cancelled; completed for {@link InvalidToolArgumentsException} only. */
  public OutcomeName outcome() {
    return info.outcome();
  }

  /** The HTTP status, if the server gave one. */
  public final @Nullable Integer status() {
    return info.status();
  }

  /** The server's {@code error.type}. */
  public final @Nullable String type() {
    return info.type();
  }

  /** The member of the request that is to blame. */
  public final @Nullable String param() {
    return info.param();
  }

  /**
   * The request's id: the server's word on it, else the one that was sent; null where it never was
   * a request.
   */
  public final @Nullable String requestId() {
    return info.requestId();
  }

  /** How long the server asks to wait. */
  public final @Nullable Duration retryAfter() {
    return info.retryAfter();
  }

  /** What had been received. */
  public final Partial partial() {
    return partial;
  }

  /** What each try met, in order. */
  public final List<Attempt> attempts() {
    return attempts;
  }

  /**
   * Why the client did not send it again, in words; null where it did not come to that question.
   */
  public final @Nullable String notRetried() {
    return notRetried;
  }

  /**
   * The numbers of the message: for {@code context_length_exceeded} prompt_tokens, max_tokens and
   * max_model_len.
   */
  public final Map<String, @Nullable Object> details() {
    return info.details();
  }

  /** Who said so. */
  public final Origin origin() {
    return info.origin();
  }

  /** What the server wrote, cut to 4096 characters; it may hold what a prompt or an answer said. */
  public final @Nullable String raw() {
    return info.raw();
  }

  /** All of this but {@link #partial}, {@link #attempts} and {@link #notRetried}, as one record. */
  public final ErrorInfo info() {
    return info;
  }

  /** What the caller can do about it. */
  public String action() {
    Registry.CodeInfo known = Registry.CODES.get(code());
    return known != null
        ? known.action()
        : "Look at the message; this version of lastword does not know the code.";
  }

  /**
   * What happened, with code, status, request id and what to do; of a retryable one also why it was
   * not sent again. {@link #info}'s message is the first part alone.
   */
  @Override
  public final String getMessage() {
    StringJoiner tags = new StringJoiner(", ", " [", "]");
    tags.add(code());
    if (status() != null) {
      tags.add("HTTP " + status());
    }
    if (param() != null) {
      tags.add("param " + param());
    }
    if (requestId() != null) {
      tags.add("request " + requestId());
    }
    if (attempts.size() > 1) {
      tags.add(attempts.size() + " attempts");
    }
    if (retryable() && notRetried != null) { // of another error nobody expects it
      tags.add("gave up: " + notRetried);
    }
    return info.message() + tags + ". " + action();
  }
}
