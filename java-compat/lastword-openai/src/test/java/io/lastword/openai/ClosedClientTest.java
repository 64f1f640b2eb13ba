package io.lastword.openai;

import static io.lastword.Answers.chunk;
import static io.lastword.Answers.server;
import static io.lastword.Answers.silence;
import static io.lastword.openai.OpenAi.HI;
import static io.lastword.openai.OpenAi.client;
import static io.lastword.openai.OpenAi.http;
import static io.lastword.openai.OpenAi.lastword;
import static org.junit.jupiter.api.Assertions.assertInstanceOf;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import com.openai.client.OpenAIClient;
import com.openai.core.RequestOptions;
import com.openai.core.http.AsyncStreamResponse;
import com.openai.core.http.HttpClient;
import com.openai.core.http.HttpRequest;
import com.openai.core.http.HttpResponse;
import com.openai.core.http.StreamResponse;
import com.openai.errors.OpenAIException;
import com.openai.errors.OpenAIIoException;
import com.openai.models.chat.completions.ChatCompletionChunk;
import io.lastword.errors.CancelledException;
import io.lastword.scripted.ScriptedServer;
import java.io.InterruptedIOException;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicReference;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.Arguments;
import org.junit.jupiter.params.provider.MethodSource;
import org.junit.jupiter.params.provider.ValueSource;

/** Whoever waits when the client is closed, for whatever, is told so at once. */
@Timeout(60)
class ClosedClientTest {

  private static final Map<String, Object> HEAD = Map.of("steps", List.of(silence()));
  private static final Map<String, Object> FIRST_TOKEN =
      Map.of("status", 200, "steps", List.of(Map.of("text", ": ping\n\n"), silence()));
  private static final Map<String, Object> MORE =
      Map.of("status", 200, "steps", List.of(chunk("Hel", null), silence()));
  private static final Map<String, Object> BODY =
      Map.of(
          "status", 200,
          "headers", Map.of("content-type", "application/json"),
          "steps", List.of(Map.of("text", "{\"choices\""), silence()));

  static Stream<Arguments> waits() {
    return Stream.of("jdk", "okhttp")
        .flatMap(
            kind ->
                Stream.of(
                    Arguments.of(kind, "the head", HEAD, false),
                    Arguments.of(kind, "the rest of the body", BODY, false),
                    Arguments.of(kind, "the first token", FIRST_TOKEN, true),
                    Arguments.of(kind, "more of the stream", MORE, true)));
  }

  @ParameterizedTest(name = "{0}: {1}")
  @MethodSource("waits")
  void closingEndsIt(String kind, String what, Map<String, Object> exchange, boolean streams)
      throws Exception {
    try (ScriptedServer server = server(List.of(exchange))) {
      OpenAIClient client = client(server.baseUrl(), http(kind), 2);
      CompletableFuture<Throwable> thrown = new CompletableFuture<>();
      Thread caller = new Thread(() -> thrown.complete(call(client, streams)));
      caller.setDaemon(true);
      caller.start();
      assertTrue(ScriptedServer.becomes(() -> !server.requests().isEmpty(), 5000));
      Thread.sleep(300); // until what was sent has been read
      client.close();
      assertInstanceOf(CancelledException.class, lastword(thrown.get(5, TimeUnit.SECONDS)), what);
    }
  }

  /** openai-java ends the threads that would tell it as soon as its HTTP client is closed. */
  @ParameterizedTest
  @ValueSource(strings = {"jdk", "okhttp"})
  void theHandlerOfAnAsynchronousStreamIsTold(String kind) throws Exception {
    try (ScriptedServer server = server(List.of(FIRST_TOKEN))) {
      OpenAIClient client = client(server.baseUrl(), http(kind), 2);
      CompletableFuture<Throwable> told = new CompletableFuture<>();
      client
          .async()
          .chat()
          .completions()
          .createStreaming(HI)
          .subscribe(
              new AsyncStreamResponse.Handler<ChatCompletionChunk>() {
                @Override
                public void onNext(ChatCompletionChunk chunk) {
                  told.complete(new AssertionError("a chunk"));
                }

                @Override
                public void onComplete(Optional<Throwable> error) {
                  told.complete(error.orElseGet(() -> new AssertionError("it completed")));
                }
              });
      assertTrue(ScriptedServer.becomes(() -> !server.requests().isEmpty(), 5000));
      Thread.sleep(300); // until what was sent has been read
      client.close();
      assertInstanceOf(CancelledException.class, lastword(told.get(5, TimeUnit.SECONDS)));
    }
  }

  /** OkHttp refuses what comes then, in words of a timer. */
  @Test
  void aCallThatBeginsMeanwhileIsCancelled() {
    AtomicReference<HttpClient> closed = new AtomicReference<>();
    HttpClient refusing =
        new HttpClient() {
          @Override
          public HttpResponse execute(HttpRequest request, RequestOptions options) {
            throw new UnsupportedOperationException("the decorator asks asynchronously");
          }

          @Override
          public CompletableFuture<HttpResponse> executeAsync(
              HttpRequest request, RequestOptions options) {
            closed.get().close();
            return CompletableFuture.failedFuture(
                new OpenAIIoException("Request failed", new InterruptedIOException("rejected")));
          }

          @Override
          public void close() {}
        };
    closed.set(LastwordHttpClient.around(refusing));
    OpenAIClient client = client("http://127.0.0.1:9/v1", closed.get(), 0);
    OpenAIException thrown =
        assertThrows(OpenAIException.class, () -> client.chat().completions().create(HI));
    assertInstanceOf(CancelledException.class, lastword(thrown));
  }

  private static Throwable call(OpenAIClient client, boolean streams) {
    try {
      if (!streams) {
        client.chat().completions().create(HI);
      } else {
        try (StreamResponse<ChatCompletionChunk> stream =
            client.chat().completions().createStreaming(HI)) {
          stream.stream().forEach(each -> {});
        }
      }
      return new AssertionError("it completed");
    } catch (OpenAIException e) {
      return e;
    }
  }
}
