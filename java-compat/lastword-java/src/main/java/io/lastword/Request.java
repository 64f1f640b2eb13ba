package io.lastword;

import io.lastword.core.Json;
import java.util.Collections;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Objects;
import org.jspecify.annotations.Nullable;

/**
 * What to send. Its members are those of OpenAI's API; {@link Builder#set} takes any other that a
 * server knows.
 *
 * <p>Immutable; one request may be sent several times.
 */
public abstract sealed class Request permits ChatRequest, CompletionRequest {

  private final Map<String, @Nullable Object> body;
  private final Map<String, String> headers;
  private final @Nullable Timeouts timeouts;

  Request(Builder<?> builder) {
    this.body = Collections.unmodifiableMap(new LinkedHashMap<>(builder.body));
    this.headers = Collections.unmodifiableMap(new LinkedHashMap<>(builder.headers));
    this.timeouts = builder.timeouts;
  }

  /** The JSON body, without {@code stream}. */
  public Map<String, @Nullable Object> body() {
    return body;
  }

  /** Headers of this request alone, by lower-case names. */
  public Map<String, String> headers() {
    return headers;
  }

  /** Limits of this request alone; null takes the client's. */
  public @Nullable Timeouts timeouts() {
    return timeouts;
  }

  /** What all requests can be given. */
  public abstract static sealed class Builder<B extends Builder<B>>
      permits ChatRequest.Builder, CompletionRequest.Builder {
    final Map<String, @Nullable Object> body = new LinkedHashMap<>();
    private final Map<String, String> headers = new LinkedHashMap<>();
    private @Nullable Timeouts timeouts;

    Builder() {}

    abstract B self();

    boolean has(String member) {
      return body.containsKey(member);
    }

    /** The name of the model, as the server lists it; vLLM alone can do without. */
    public B model(String model) {
      return set("model", Objects.requireNonNull(model, "model"));
    }

    /** At most so many tokens of answer. */
    public B maxTokens(int tokens) {
      return set("max_tokens", tokens);
    }

    /** How much chance decides: 0 nothing, 1 as trained. */
    public B temperature(double temperature) {
      return set("temperature", temperature);
    }

    /** So many answers. */
    public B n(int choices) {
      return set("n", choices);
    }

    /** Stop before any of these texts. */
    public B stop(String... texts) {
      for (String each : Objects.requireNonNull(texts, "stop")) {
        Objects.requireNonNull(each, "a text of stop");
      }
      return set("stop", List.of(texts));
    }

    /**
     * Any member of the body.
     *
     * @param value a map, list, string, number, boolean or null; it is copied, with all that is in
     *     it
     * @throws IllegalArgumentException for {@code stream}, which is the method's to say
     */
    public B set(String name, @Nullable Object value) {
      if (Objects.requireNonNull(name, "name of the member").equals("stream")) {
        throw new IllegalArgumentException("stream: call create or createStreaming, which say it");
      }
      body.put(name, Json.frozen(value));
      return self();
    }

    /**
     * A header of this request, in place of the client's. Those of the connection and of the body
     * ({@code host}, {@code content-length} and so on) are never the caller's.
     */
    public B header(String name, String value) {
      Objects.requireNonNull(name, "name of the header");
      headers.put(name.toLowerCase(Locale.ROOT), Objects.requireNonNull(value, name));
      return self();
    }

    /**
     * The request's id (HDR-1: 1 to 128 letters, digits and {@code -_.:}); a random one is made if
     * none is given.
     */
    public B requestId(String id) {
      return header("x-request-id", id);
    }

    /** Limits of this request, in place of the client's. */
    public B timeouts(Timeouts value) {
      timeouts = Objects.requireNonNull(value, "timeouts");
      return self();
    }
  }
}
