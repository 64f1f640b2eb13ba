package io.lastword.examples.langchain4j;

import com.fasterxml.jackson.core.JsonProcessingException;
import com.fasterxml.jackson.core.type.TypeReference;
import com.fasterxml.jackson.databind.ObjectMapper;
import dev.langchain4j.exception.UnsupportedFeatureException;
import dev.langchain4j.http.client.HttpClient;
import dev.langchain4j.http.client.HttpClientBuilder;
import dev.langchain4j.http.client.HttpRequest;
import dev.langchain4j.http.client.SuccessfulHttpResponse;
import dev.langchain4j.http.client.sse.ServerSentEvent;
import dev.langchain4j.http.client.sse.ServerSentEventContext;
import dev.langchain4j.http.client.sse.ServerSentEventListener;
import dev.langchain4j.http.client.sse.ServerSentEventParser;
import dev.langchain4j.http.client.sse.ServerSentEventParsingHandle;
import io.lastword.ChatRequest;
import io.lastword.Chunk;
import io.lastword.Completed;
import io.lastword.LastwordClient;
import io.lastword.errors.LastwordException;
import java.nio.channels.UnresolvedAddressException;
import java.time.Duration;
import java.util.Map;
import java.util.concurrent.Flow;

/**
 * LangChain4j's chat models on lastword: a stream that is not whole ends in {@code onError}, and an
 * error says what it is.
 *
 * <pre>{@code
 * LastwordClient client = LastwordClient.builder().baseUrl("http://127.0.0.1:8000/v1").apiKey("k").build();
 * ChatModel model = OpenAiChatModel.builder()
 *     .httpClientBuilder(LastwordLangChain4jClient.builder(client)).baseUrl(client.baseUrl())
 *     .modelName("m").maxRetries(0).build();
 * }</pre>
 *
 * <p>Whatever goes wrong is a {@link LastwordException}, thrown by {@code chat} or given to {@code
 * onError} as it is: LangChain4j translates its own HTTP errors only. Retries and limits are those
 * of the client. Give the model {@code maxRetries(0)}, because it would send every failure again;
 * its {@code timeout} is not used, because it may mean the head, a silence or the whole.
 */
public final class LastwordLangChain4jClient implements HttpClient {

  private static final ObjectMapper JSON = new ObjectMapper();

  private final LastwordClient client;

  private LastwordLangChain4jClient(LastwordClient client) {
    this.client = client;
  }

  /** For a model's {@code httpClientBuilder}; the client stays yours to close. */
  public static HttpClientBuilder builder(LastwordClient client) {
    return new Builder(client);
  }

  @Override
  public SuccessfulHttpResponse execute(HttpRequest request) {
    try {
      Completed answer = client.chat().completions().create(translated(request));
      return SuccessfulHttpResponse.builder()
          .statusCode(200)
          .headers(Map.of())
          .body(json(answer.body()))
          .build();
    } catch (LastwordException e) {
      throw kept(e);
    }
  }

  /** The parser has nothing to do: lastword has read the stream, and hands over its chunks. */
  @Override
  public void execute(
      HttpRequest request, ServerSentEventParser parser, ServerSentEventListener listener) {
    client.chat().completions().publish(translated(request)).subscribe(new Events(listener));
  }

  private ChatRequest translated(HttpRequest request) {
    if (!request.url().equals(client.baseUrl() + "/chat/completions")) {
      throw new UnsupportedFeatureException(
          request.url()
              + ": this client is for the chat models with baseUrl(\""
              + client.baseUrl()
              + "\")");
    }
    ChatRequest.Builder translated = ChatRequest.builder();
    request.headers().forEach((name, values) -> translated.header(name, String.join(", ", values)));
    try {
      Map<String, Object> body =
          JSON.readValue(request.body(), new TypeReference<Map<String, Object>>() {});
      body.remove("stream"); // the method says it
      body.forEach(translated::set);
    } catch (JsonProcessingException e) {
      throw new IllegalArgumentException("the body is no JSON object", e);
    }
    return translated.build();
  }

  private static String json(Object value) {
    try {
      return JSON.writeValueAsString(value);
    } catch (JsonProcessingException e) {
      throw new IllegalStateException(e); // it was parsed from JSON
    }
  }

  /** By this one root cause LangChain4j would put an exception of its own in the place of ours. */
  private static LastwordException kept(LastwordException error) {
    Throwable root = error;
    while (root.getCause() != null) {
      root = root.getCause();
    }
    boolean replaced = root instanceof UnresolvedAddressException;
    return replaced
        ? LastwordException.of(
            error.info(), error.partial(), error.attempts(), null, error.notRetried())
        : error;
  }

  /** One stream's way to the listener, which is called by one thread at a time. */
  private static final class Events
      implements Flow.Subscriber<Chunk>, ServerSentEventParsingHandle {
    private final ServerSentEventListener listener;
    private final ServerSentEventContext context = new ServerSentEventContext(this);
    private volatile Flow.Subscription subscription;
    private volatile boolean cancelled;
    private boolean open;

    Events(ServerSentEventListener listener) {
      this.listener = listener;
    }

    @Override
    public void onSubscribe(Flow.Subscription given) {
      subscription = given;
      given.request(Long.MAX_VALUE);
    }

    @Override
    public void onNext(Chunk chunk) {
      event(json(chunk.body()));
    }

    @Override
    public void onComplete() {
      event("[DONE]");
      listener.onClose();
    }

    @Override
    public void onError(Throwable error) {
      listener.onError(error instanceof LastwordException known ? kept(known) : error);
    }

    private void event(String data) {
      if (!open) {
        open = true;
        listener.onOpen(SuccessfulHttpResponse.builder().statusCode(200).headers(Map.of()).build());
      }
      listener.onEvent(new ServerSentEvent(null, data), context);
    }

    /** Closes the socket; nothing is told after it. */
    @Override
    public void cancel() {
      cancelled = true;
      subscription.cancel();
    }

    @Override
    public boolean isCancelled() {
      return cancelled;
    }
  }

  /**
   * What LangChain4j asks of a builder; it sets both limits always, whether its user has or not.
   */
  private static final class Builder implements HttpClientBuilder {
    private final LastwordClient client;
    private Duration connectTimeout;
    private Duration readTimeout;

    Builder(LastwordClient client) {
      this.client = client;
    }

    @Override
    public Duration connectTimeout() {
      return connectTimeout;
    }

    @Override
    public HttpClientBuilder connectTimeout(Duration timeout) {
      connectTimeout = timeout;
      return this;
    }

    @Override
    public Duration readTimeout() {
      return readTimeout;
    }

    @Override
    public HttpClientBuilder readTimeout(Duration timeout) {
      readTimeout = timeout;
      return this;
    }

    @Override
    public HttpClient build() {
      return new LastwordLangChain4jClient(client);
    }
  }
}
