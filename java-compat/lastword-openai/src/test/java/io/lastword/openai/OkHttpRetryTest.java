package io.lastword.openai;

import static io.lastword.Answers.answer;
import static io.lastword.Answers.failure;
import static io.lastword.Answers.server;
import static io.lastword.openai.OpenAi.HI;
import static io.lastword.openai.OpenAi.client;
import static org.junit.jupiter.api.Assertions.assertEquals;

import com.openai.client.OpenAIClient;
import com.openai.client.okhttp.OkHttpClient;
import com.openai.core.RequestOptions;
import com.openai.core.http.HttpClient;
import com.openai.core.http.HttpRequest;
import com.openai.core.http.HttpResponse;
import io.lastword.scripted.ScriptedServer;
import io.lastword.scripted.ScriptedServer.Listening;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.MethodSource;

/**
 * openai-java's asynchronous loop of retries, which does not try again after an exception of
 * OkHttp: the decorator makes a response of it.
 */
@Timeout(30)
class OkHttpRetryTest {

  /** openai-java's own count. */
  private static final String RETRIES = "x-stainless-retry-count";

  static Stream<Map<String, Object>> failures() {
    return Stream.of(
        failure(503, "engine_unavailable", "starting"),
        Map.of("steps", List.of(Map.of("end", "reset"))));
  }

  @ParameterizedTest
  @MethodSource("failures")
  void aFailedAttemptIsFollowedByAnother(Map<String, Object> failed) throws Exception {
    try (ScriptedServer server = server(List.of(failed, answer("Hi")))) {
      assertEquals(Optional.of("Hi"), answered(server, OkHttpClient.builder().build()));
      assertEquals(2, server.requests().size());
      assertEquals("1", server.requests().get(1).headers.get(RETRIES));
    }
  }

  @Test
  void aRefusedConnectionIsFollowedByAnother() throws Exception {
    try (ScriptedServer absent = new ScriptedServer(List.of(), "event", Listening.NO);
        ScriptedServer server = server(List.of(answer("Hi")))) {
      HttpClient http = new FirstElsewhere(absent.baseUrl(), OkHttpClient.builder().build());
      assertEquals(Optional.of("Hi"), answered(server, http));
      assertEquals("1", server.requests().get(0).headers.get(RETRIES));
    }
  }

  private static Optional<String> answered(ScriptedServer server, HttpClient http)
      throws Exception {
    OpenAIClient client = client(server.baseUrl(), LastwordHttpClient.around(http), 1);
    try {
      return client
          .async()
          .chat()
          .completions()
          .create(HI)
          .get(10, TimeUnit.SECONDS)
          .choices()
          .get(0)
          .message()
          .content();
    } finally {
      client.close();
    }
  }

  /** Sends the first attempt to where nobody listens. */
  private static final class FirstElsewhere implements HttpClient {

    private final AtomicBoolean tried = new AtomicBoolean();
    private final String elsewhere;
    private final HttpClient delegate;

    FirstElsewhere(String elsewhere, HttpClient delegate) {
      this.elsewhere = elsewhere;
      this.delegate = delegate;
    }

    @Override
    public HttpResponse execute(HttpRequest request, RequestOptions options) {
      throw new UnsupportedOperationException("the decorator asks asynchronously");
    }

    @Override
    public CompletableFuture<HttpResponse> executeAsync(
        HttpRequest request, RequestOptions options) {
      boolean again = tried.getAndSet(true);
      return delegate.executeAsync(
          again ? request : request.toBuilder().baseUrl(elsewhere).build(), options);
    }

    @Override
    public void close() {
      delegate.close();
    }
  }
}
