package io.lastword.openai;

import static io.lastword.Answers.answer;
import static io.lastword.Answers.chunk;
import static io.lastword.Answers.failure;
import static io.lastword.Answers.server;
import static io.lastword.Answers.silence;
import static io.lastword.Answers.stream;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertInstanceOf;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import com.openai.client.OpenAIClient;
import com.openai.client.OpenAIClientImpl;
import com.openai.client.okhttp.OkHttpClient;
import com.openai.core.ClientOptions;
import com.openai.core.http.AsyncStreamResponse;
import com.openai.core.http.HttpClient;
import com.openai.core.http.StreamResponse;
import com.openai.errors.BadRequestException;
import com.openai.errors.InternalServerException;
import com.openai.errors.OpenAIException;
import com.openai.models.chat.completions.ChatCompletionChunk;
import com.openai.models.chat.completions.ChatCompletionCreateParams;
import io.lastword.Codes;
import io.lastword.Timeouts;
import io.lastword.errors.CancelledException;
import io.lastword.errors.ConnectionFailedException;
import io.lastword.errors.ContextLengthExceededException;
import io.lastword.errors.LastwordException;
import io.lastword.errors.RequestTimeoutException;
import io.lastword.errors.StreamIncompleteException;
import io.lastword.scripted.ScriptedServer;
import io.lastword.scripted.ScriptedServer.Listening;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionException;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** What a user of openai-java sees with the decorator: on the JDK's client, and around OkHttp. */
@Timeout(30)
class LastwordHttpClientTest {

  private static final ChatCompletionCreateParams HI =
      ChatCompletionCreateParams.builder().model("m").addUserMessage("hi").build();
  private static final String VLLM =
      "This model's maximum context length is 2048 tokens. However, you requested 4000 output tokens and your prompt contains"
          + " at least 12 input tokens";

  private static OpenAIClient client(String baseUrl, HttpClient http, int retries) {
    ClientOptions options =
        ClientOptions.builder()
            .httpClient(http)
            .baseUrl(baseUrl)
            .apiKey("k")
            .maxRetries(retries)
            .build();
    return new OpenAIClientImpl(options);
  }

  private static HttpClient http(String kind) {
    return kind.equals("jdk")
        ? LastwordHttpClient.create()
        : LastwordHttpClient.around(OkHttpClient.builder().build());
  }

  private static LastwordException lastword(Throwable thrown) {
    return LastwordErrors.of(thrown).orElseThrow(() -> new AssertionError(thrown));
  }

  @ParameterizedTest
  @ValueSource(strings = {"jdk", "okhttp"})
  void goodAnswersReadAsEver(String kind) throws Exception {
    try (ScriptedServer server = server(List.of(answer("Hello"), stream("[DONE]", "Hel", "lo")))) {
      OpenAIClient client = client(server.baseUrl(), http(kind), 0);
      assertEquals(
          Optional.of("Hello"),
          client.chat().completions().create(HI).choices().get(0).message().content());
      StringBuilder text = new StringBuilder();
      try (StreamResponse<ChatCompletionChunk> stream =
          client.chat().completions().createStreaming(HI)) {
        stream.stream()
            .forEach(each -> text.append(each.choices().get(0).delta().content().orElse("")));
      }
      assertEquals("Hello", text.toString());
      assertEquals(server.requests().get(0).connection, server.requests().get(1).connection);
      client.close();
    }
  }

  @ParameterizedTest
  @ValueSource(strings = {"jdk", "okhttp"})
  void anIntegerCodeIsReadAndNotRetried(String kind) throws Exception {
    try (ScriptedServer server = server(List.of(failure(400, 400, VLLM)))) {
      OpenAIClient client = client(server.baseUrl(), http(kind), 2);
      BadRequestException error =
          assertThrows(BadRequestException.class, () -> client.chat().completions().create(HI));
      assertEquals(Optional.of(Codes.CONTEXT_LENGTH_EXCEEDED), error.code());
      LastwordException ours =
          assertInstanceOf(ContextLengthExceededException.class, lastword(error));
      assertEquals(2048, ours.details().get("max_model_len"));
      assertEquals(400, ours.status());
      assertEquals(server.requests().get(0).headers.get("x-request-id"), ours.requestId());
      assertEquals(1, server.requests().size());
      client.close();
    }
  }

  @ParameterizedTest
  @ValueSource(strings = {"jdk", "okhttp"})
  void aCutStreamThrowsOutOfTheLoop(String kind) throws Exception {
    try (ScriptedServer server = server(List.of(stream(Map.of("end", "truncate"), "Hel", "lo")))) {
      OpenAIClient client = client(server.baseUrl(), http(kind), 0);
      try (StreamResponse<ChatCompletionChunk> stream =
          client.chat().completions().createStreaming(HI)) {
        OpenAIException error =
            assertThrows(OpenAIException.class, () -> stream.stream().forEach(each -> {}));
        assertEquals(
            "Hello",
            assertInstanceOf(StreamIncompleteException.class, lastword(error)).partial().text());
      }
      client.close();
    }
  }

  @Test
  void aStreamThatBreaksBeforeItsFirstChunkIsTriedAgain() throws Exception {
    try (ScriptedServer server =
        server(List.of(stream(Map.of("end", "truncate")), stream("[DONE]", "Hi")))) {
      OpenAIClient client = client(server.baseUrl(), LastwordHttpClient.create(), 1);
      try (StreamResponse<ChatCompletionChunk> stream =
          client.chat().completions().createStreaming(HI)) {
        assertEquals(2, stream.stream().count());
      }
      assertEquals("2", server.requests().get(1).headers.get("x-request-attempt"));
      client.close();
    }
  }

  @Test
  void a200ThatIsAnErrorIsOne() throws Exception {
    Map<String, Object> error =
        Map.of("object", "error", "message", "boom", "type", "InternalServerError", "code", 500);
    Map<String, Object> exchange = Map.of("status", 200, "steps", List.of(Map.of("json", error)));
    try (ScriptedServer server = server(List.of(exchange))) {
      OpenAIClient client = client(server.baseUrl(), LastwordHttpClient.create(), 0);
      InternalServerException thrown =
          assertThrows(InternalServerException.class, () -> client.chat().completions().create(HI));
      assertEquals(Optional.of(Codes.INTERNAL_SERVER_ERROR), thrown.code());
      assertTrue(thrown.getMessage().contains("boom"), thrown.getMessage());
      client.close();
    }
  }

  @Test
  void anErrorThatIsNullIsNone() throws Exception {
    Map<String, Object> data =
        new LinkedHashMap<>(io.lastword.vectors.Vectors.map(chunk("Hi", null), "data"));
    data.put("error", null);
    Map<String, Object> exchange =
        Map.of(
            "status",
            200,
            "steps",
            List.of(Map.of("data", data), chunk(null, "stop"), Map.of("data", "[DONE]")));
    try (ScriptedServer server = server(List.of(exchange))) {
      OpenAIClient client = client(server.baseUrl(), LastwordHttpClient.create(), 0);
      try (StreamResponse<ChatCompletionChunk> stream =
          client.chat().completions().createStreaming(HI)) {
        assertEquals(2, stream.stream().count());
      }
      client.close();
    }
  }

  @Test
  void aHintOfDaysEndsTheLoop() throws Exception {
    Map<String, Object> refused =
        new LinkedHashMap<>(failure(429, "rate_limit_exceeded", "tomorrow"));
    refused.put("headers", Map.of("retry-after", "277403"));
    try (ScriptedServer server = server(List.of(refused))) {
      OpenAIClient client = client(server.baseUrl(), LastwordHttpClient.create(), 2);
      OpenAIException error =
          assertThrows(OpenAIException.class, () -> client.chat().completions().create(HI));
      assertEquals(Codes.RATE_LIMIT_EXCEEDED, lastword(error).code());
      assertEquals(1, server.requests().size());
      client.close();
    }
  }

  @Test
  void silenceEndsByTheTimers() throws Exception {
    Timeouts short_ =
        Timeouts.none().withFirstToken(Duration.ofMillis(300)).withIdle(Duration.ofMillis(300));
    try (ScriptedServer server =
        server(List.of(Map.of("steps", List.of(silence())), stream(silence(), "Hel")))) {
      OpenAIClient client = client(server.baseUrl(), LastwordHttpClient.create(short_), 0);
      OpenAIException first =
          assertThrows(
              OpenAIException.class, () -> client.chat().completions().createStreaming(HI));
      assertEquals(
          Codes.FIRST_TOKEN_TIMEOUT,
          assertInstanceOf(RequestTimeoutException.class, lastword(first)).code());
      try (StreamResponse<ChatCompletionChunk> stream =
          client.chat().completions().createStreaming(HI)) {
        OpenAIException idle =
            assertThrows(OpenAIException.class, () -> stream.stream().forEach(each -> {}));
        assertEquals(Codes.GENERATION_STALLED, lastword(idle).code());
      }
      assertTrue(
          ScriptedServer.becomes(
              () -> server.requests().stream().allMatch(each -> each.disconnectedAt != 0), 2000));
      client.close();
    }
  }

  @Test
  void anInterruptEndsTheWaitAndTheSocket() throws Exception {
    try (ScriptedServer server = server(List.of(stream(silence(), "Hel")))) {
      OpenAIClient client = client(server.baseUrl(), LastwordHttpClient.create(), 0);
      CompletableFuture<Throwable> thrown = new CompletableFuture<>();
      Thread reader =
          new Thread(
              () -> {
                try (StreamResponse<ChatCompletionChunk> stream =
                    client.chat().completions().createStreaming(HI)) {
                  stream.stream().forEach(each -> {});
                  thrown.complete(new AssertionError("it completed"));
                } catch (OpenAIException e) {
                  thrown.complete(e);
                }
              });
      reader.start();
      assertTrue(ScriptedServer.becomes(() -> !server.requests().isEmpty(), 5000));
      Thread.sleep(200);
      reader.interrupt();
      assertInstanceOf(CancelledException.class, lastword(thrown.get(5, TimeUnit.SECONDS)));
      assertTrue(ScriptedServer.becomes(() -> server.requests().get(0).disconnectedAt != 0, 2000));
      client.close();
    }
  }

  @Test
  void asynchronousCallsFailTheSameWay() throws Exception {
    try (ScriptedServer server =
        server(
            List.of(
                failure(400, 400, VLLM), stream(Map.of("end", "reset"), "Hel"), answer("Hi")))) {
      OpenAIClient client = client(server.baseUrl(), LastwordHttpClient.create(), 0);
      CompletionException refused =
          assertThrows(
              CompletionException.class,
              () -> client.async().chat().completions().create(HI).join());
      assertInstanceOf(ContextLengthExceededException.class, lastword(refused));
      List<String> texts = new ArrayList<>();
      CompletableFuture<Optional<Throwable>> ended = new CompletableFuture<>();
      client
          .async()
          .chat()
          .completions()
          .createStreaming(HI)
          .subscribe(
              new AsyncStreamResponse.Handler<ChatCompletionChunk>() {
                @Override
                public void onNext(ChatCompletionChunk each) {
                  texts.add(each.choices().get(0).delta().content().orElse(""));
                }

                @Override
                public void onComplete(Optional<Throwable> error) {
                  ended.complete(error);
                }
              });
      Throwable broken = ended.get(5, TimeUnit.SECONDS).orElseThrow();
      assertEquals(List.of("Hel"), texts);
      assertInstanceOf(StreamIncompleteException.class, lastword(broken));
      assertFalse(
          client
              .async()
              .chat()
              .completions()
              .create(HI)
              .get(5, TimeUnit.SECONDS)
              .choices()
              .isEmpty());
      client.close();
    }
  }

  @Test
  void aConnectionThatBreaksIsTriedAgainAlsoAsynchronously() throws Exception {
    Map<String, Object> reset = Map.of("steps", List.of(Map.of("end", "reset")));
    try (ScriptedServer server = server(List.of(reset, answer("Hi"), reset, reset))) {
      OpenAIClient client = client(server.baseUrl(), LastwordHttpClient.create(), 1);
      assertFalse(
          client
              .async()
              .chat()
              .completions()
              .create(HI)
              .get(5, TimeUnit.SECONDS)
              .choices()
              .isEmpty());
      CompletionException error =
          assertThrows(
              CompletionException.class,
              () -> client.async().chat().completions().create(HI).join());
      assertInstanceOf(ConnectionFailedException.class, lastword(error));
      assertEquals(4, server.requests().size());
      client.close();
    }
  }

  @Test
  void whatDoesNotGeneratePassesUntouched() throws Exception {
    Map<String, Object> csv =
        Map.of(
            "status", 200,
            "headers", Map.of("content-type", "text/csv"),
            "steps", List.of(Map.of("text", "a,b")));
    Map<String, Object> nothing =
        Map.of(
            "status",
            200,
            "framing",
            "content-length",
            "steps",
            List.of(Map.of("end", "complete")));
    try (ScriptedServer server = server(List.of(csv, nothing))) {
      OpenAIClient client = client(server.baseUrl(), LastwordHttpClient.create(), 0);
      assertEquals(
          "a,b",
          new String(client.files().content("f").body().readAllBytes(), StandardCharsets.UTF_8));
      client.responses().delete("r");
      client.close();
    }
  }

  @Test
  void aServerThatIsNotThereIsSaidToBe() throws Exception {
    try (ScriptedServer server = new ScriptedServer(List.of(), "event", Listening.NO)) {
      OpenAIClient client = client(server.baseUrl(), LastwordHttpClient.create(), 0);
      OpenAIException error =
          assertThrows(OpenAIException.class, () -> client.chat().completions().create(HI));
      assertInstanceOf(ConnectionFailedException.class, lastword(error));
      client.close();
    }
  }
}
