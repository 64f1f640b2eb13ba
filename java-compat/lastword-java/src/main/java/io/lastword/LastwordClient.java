package io.lastword;

import io.lastword.core.BaseUrl;
import io.lastword.core.RetryBudget;
import io.lastword.errors.LastwordException;
import io.lastword.transport.CallRules;
import io.lastword.transport.Caller;
import io.lastword.transport.Prepared;
import io.lastword.transport.Transport;
import java.net.ProxySelector;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Objects;
import javax.net.ssl.SSLContext;
import org.jspecify.annotations.Nullable;

/**
 * Talks to an OpenAI-compatible server; every call ends in a whole answer or in a {@link
 * LastwordException}.
 *
 * <pre>{@code
 * try (LastwordClient client = LastwordClient.builder().baseUrl("http://127.0.0.1:8000/v1").build()) {
 *   Completed answer = client.chat().completions().create(ChatRequest.builder().model("m").user("hi").build());
 *   System.out.println(answer.text());
 * }
 * }</pre>
 *
 * <p>A client may be shared between threads, and should be: it holds the connections. No thread of
 * it keeps a process alive.
 */
public final class LastwordClient implements AutoCloseable {

  /** This library's version. */
  public static final String VERSION = "0.1.0";

  private final String baseUrl;
  private final Map<String, String> headers;
  private final Timeouts timeouts;
  private final Caller caller;
  private final Chat chat = new Chat(new Endpoint<>(this, "/chat/completions"));
  private final Endpoint<CompletionRequest> completions = new Endpoint<>(this, "/completions");

  private LastwordClient(Builder builder) {
    this.baseUrl =
        BaseUrl.checked(builder.baseUrl == null ? "https://api.openai.com/v1" : builder.baseUrl);
    this.headers = builder.checkedHeaders();
    this.timeouts = builder.timeouts;
    CallRules rules =
        new CallRules(builder.retry, new RetryBudget(builder.retry.budget()), builder.profile);
    this.caller = new Caller(new Transport(builder.sslContext, builder.proxy), baseUrl, rules);
  }

  /** Sets a client up. */
  public static Builder builder() {
    return new Builder();
  }

  /** {@code /chat/…} */
  public Chat chat() {
    return chat;
  }

  /** {@code /completions} */
  public Endpoint<CompletionRequest> completions() {
    return completions;
  }

  /**
   * The models that the server has ({@code GET /models}).
   *
   * @throws LastwordException if the request did not complete
   */
  public List<Model> models() {
    List<Model> models = new ArrayList<>();
    for (Map<String, @Nullable Object> each :
        caller.list(Prepared.get("/models", headers, timeouts))) {
      models.add(new Model(String.valueOf(each.get("id")), each));
    }
    return models;
  }

  /** Where requests go. */
  public String baseUrl() {
    return baseUrl;
  }

  /**
   * End every call that runs, and begin no other: its connection is closed at once, and who waits
   * for it, in any thread, gets a {@code CancelledException}. Idle connections are closed at once
   * on JDK 21 and newer; on 17 to 20 they stay open until the server closes them, or the JDK finds
   * that nobody uses them any more.
   */
  @Override
  public void close() {
    caller.close();
  }

  Caller caller() {
    return caller;
  }

  Map<String, String> headers() {
    return headers;
  }

  Timeouts timeouts() {
    return timeouts;
  }

  /**
   * The endpoints under {@code /chat}.
   *
   * @param completions {@code /chat/completions}
   */
  public record Chat(Endpoint<ChatRequest> completions) {}

  /** Sets a client up; what is not given is the default. */
  public static final class Builder {
    private @Nullable String baseUrl = environment("BASE_URL");
    private @Nullable String apiKey = environment("API_KEY");
    private Timeouts timeouts = Timeouts.defaults();
    private RetryPolicy retry = RetryPolicy.defaults();
    private final Map<String, String> headers = new LinkedHashMap<>();
    private @Nullable Profile profile;
    private @Nullable SSLContext sslContext;
    private @Nullable ProxySelector proxy;

    private Builder() {}

    /**
     * The server, with its {@code /v1}; else LASTWORD_BASE_URL or OPENAI_BASE_URL, else OpenAI's.
     */
    public Builder baseUrl(String url) {
      baseUrl = Objects.requireNonNull(url, "baseUrl");
      return this;
    }

    /** The bearer token; else LASTWORD_API_KEY or OPENAI_API_KEY, else none is sent. */
    public Builder apiKey(@Nullable String key) {
      apiKey = key;
      return this;
    }

    /** The limits of every call that brings none of its own. */
    public Builder timeouts(Timeouts value) {
      timeouts = Objects.requireNonNull(value, "timeouts");
      return this;
    }

    /** When to send a request again; {@link RetryPolicy#never} where somebody above does. */
    public Builder retry(RetryPolicy value) {
      retry = Objects.requireNonNull(value, "retry");
      return this;
    }

    /** A header of every request. */
    public Builder header(String name, String value) {
      Objects.requireNonNull(name, "name of the header");
      headers.put(name.toLowerCase(Locale.ROOT), Objects.requireNonNull(value, name));
      return this;
    }

    /** A server known to end its answers differently; none is ever guessed. */
    public Builder profile(@Nullable Profile value) {
      profile = value;
      return this;
    }

    /** Replaces the JDK's verification of certificates. */
    public Builder sslContext(SSLContext value) {
      sslContext = value;
      return this;
    }

    /**
     * Replaces the JDK's choice of proxies (the system properties {@code http.proxyHost} and so
     * on).
     */
    public Builder proxy(ProxySelector value) {
      proxy = value;
      return this;
    }

    /**
     * The client.
     *
     * @throws IllegalArgumentException for settings that cannot work; it says what to give instead
     */
    public LastwordClient build() {
      return new LastwordClient(this);
    }

    private Map<String, String> checkedHeaders() {
      Map<String, String> all =
          new LinkedHashMap<>(Map.of("user-agent", "lastword-java/" + VERSION));
      if (apiKey != null && !apiKey.isEmpty()) {
        if (!apiKey.chars().allMatch(each -> each > 0x20 && each < 0x7f)) {
          throw new IllegalArgumentException(
              "apiKey: it has characters that no key has (a space or a line break, perhaps)");
        }
        all.put("authorization", "Bearer " + apiKey);
      }
      all.putAll(headers);
      return Map.copyOf(all);
    }

    private static @Nullable String environment(String name) {
      for (String prefix : List.of("LASTWORD_", "OPENAI_")) {
        String value = System.getenv(prefix + name);
        if (value != null && !value.isEmpty()) {
          return value;
        }
      }
      return null;
    }
  }
}
