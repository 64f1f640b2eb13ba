package io.lastword.errors;

import io.lastword.Category;
import io.lastword.Codes;
import io.lastword.Origin;
import io.lastword.OutcomeName;
import io.lastword.core.Json;
import java.io.Serializable;
import java.time.Duration;
import java.util.LinkedHashMap;
import java.util.Map;
import org.jspecify.annotations.Nullable;

/**
 * One failure, classified.
 *
 * @param code the contract's (see {@link Codes}), or the raw code of a newer contract
 * @param category who can do something about it
 * @param outcome failed, incomplete or cancelled
 * @param retryable whether the same request may succeed later
 * @param message what happened, for people
 * @param type the server's {@code error.type}
 * @param param the member of the request that is to blame
 * @param status the HTTP status received if it was an error's, else the one that the body names
 * @param requestId the server's id of the request
 * @param retryAfter how long the server asks to wait
 * @param shouldRetry the server's own word ({@code x-should-retry}, the body's {@code retryable})
 * @param details the numbers of the message
 * @param origin who said so
 * @param raw what the server wrote, cut to 4096 characters
 */
public record ErrorInfo(
    String code,
    Category category,
    OutcomeName outcome,
    boolean retryable,
    String message,
    @Nullable String type,
    @Nullable String param,
    @Nullable Integer status,
    @Nullable String requestId,
    @Nullable Duration retryAfter,
    @Nullable Boolean shouldRetry,
    Map<String, @Nullable Object> details,
    Origin origin,
    @Nullable String raw)
    implements Serializable {

  /** Keeps a copy of {@code details} that nobody can change. */
  public ErrorInfo {
    details = Json.frozen(details);
  }

  /** This, to be changed. */
  public Builder toBuilder() {
    return new Builder(this);
  }

  /** An {@link ErrorInfo} in the making. */
  public static final class Builder {
    private String code;
    private Category category;
    private OutcomeName outcome;
    private boolean retryable;
    private String message;
    private @Nullable String type;
    private @Nullable String param;
    private @Nullable Integer status;
    private @Nullable String requestId;
    private @Nullable Duration retryAfter;
    private @Nullable Boolean shouldRetry;
    private Map<String, @Nullable Object> details = Map.of();
    private Origin origin;
    private @Nullable String raw;

    /** The five that nothing is without. */
    public Builder(
        String code, Category category, OutcomeName outcome, String message, Origin origin) {
      this.code = code;
      this.category = category;
      this.outcome = outcome;
      this.message = message;
      this.origin = origin;
    }

    private Builder(ErrorInfo info) {
      this(info.code, info.category, info.outcome, info.message, info.origin);
      retryable = info.retryable;
      type = info.type;
      param = info.param;
      status = info.status;
      requestId = info.requestId;
      retryAfter = info.retryAfter;
      shouldRetry = info.shouldRetry;
      details = info.details;
      raw = info.raw;
    }

    /** Whether the same request may succeed later. */
    public Builder retryable(boolean value) {
      retryable = value;
      return this;
    }

    /** The server's {@code error.type}. */
    public Builder type(@Nullable String value) {
      type = value;
      return this;
    }

    /** The member of the request that is to blame. */
    public Builder param(@Nullable String value) {
      param = value;
      return this;
    }

    /** The HTTP status. */
    public Builder status(@Nullable Integer value) {
      status = value;
      return this;
    }

    /** The server's id of the request. */
    public Builder requestId(@Nullable String value) {
      requestId = value;
      return this;
    }

    /** How long the server asks to wait. */
    public Builder retryAfter(@Nullable Duration value) {
      retryAfter = value;
      return this;
    }

    /** The server's own word on sending it again. */
    public Builder shouldRetry(@Nullable Boolean value) {
      shouldRetry = value;
      return this;
    }

    /** The numbers of the message; they are copied. */
    public Builder details(Map<String, ? extends @Nullable Object> value) {
      details = new LinkedHashMap<>(value);
      return this;
    }

    /** What the server wrote, cut by whoever gives it (see {@link ErrorInfo#raw}). */
    public Builder raw(@Nullable String value) {
      raw = value;
      return this;
    }

    /** The error, as it now is. */
    public ErrorInfo build() {
      return new ErrorInfo(
          code,
          category,
          outcome,
          retryable,
          message,
          type,
          param,
          status,
          requestId,
          retryAfter,
          shouldRetry,
          details,
          origin,
          raw);
    }
  }
}
