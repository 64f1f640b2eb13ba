package io.lastword;

import static io.lastword.Answers.HI;
import static io.lastword.Answers.TOO_LONG;
import static io.lastword.Answers.answer;
import static io.lastword.Answers.builder;
import static io.lastword.Answers.client;
import static io.lastword.Answers.failure;
import static io.lastword.Answers.json;
import static io.lastword.Answers.server;
import static io.lastword.Answers.silence;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertInstanceOf;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.lastword.core.Json;
import io.lastword.errors.CancelledException;
import io.lastword.errors.ContextLengthExceededException;
import io.lastword.errors.InvalidRequestException;
import io.lastword.errors.LastwordException;
import io.lastword.scripted.Received;
import io.lastword.scripted.ScriptedServer;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionException;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;

/**
 * What a caller of the client sees of answers and errors, on real sockets, and is refused before.
 */
@Timeout(30)
class LastwordClientTest {

  @Test
  void theVersionIsThatOfThePom() {
    assertEquals(System.getProperty("lastword.version"), LastwordClient.VERSION);
  }

  @Test
  void aWholeAnswerIsCompleted() throws Exception {
    try (ScriptedServer server = server(List.of(answer("Hello")));
        LastwordClient client = client(server)) {
      Completed done = client.chat().completions().create(HI);
      assertEquals("Hello", done.text());
      assertEquals(Map.of(0, "stop"), done.finishReasons());
      assertEquals(1, done.attempts().size());
      Received request = server.requests().get(0);
      assertEquals(done.requestId(), request.headers.get("x-request-id"));
      assertEquals("Bearer k", request.headers.get("authorization"));
      // The JDK's default asks for h2c, and vLLM then reads an empty body.
      assertNull(request.headers.get("upgrade"));
      assertTrue(
          ScriptedServer.becomes(() -> server.problems().isEmpty(), 2000),
          () -> server.problems().toString());
    }
  }

  @Test
  void anErrorHasItsNumbersAndIsNotSentTwice() throws Exception {
    try (ScriptedServer server = server(List.of(failure(400, 400, TOO_LONG)));
        LastwordClient client = client(server)) {
      ContextLengthExceededException error =
          assertThrows(
              ContextLengthExceededException.class, () -> client.chat().completions().create(HI));
      assertEquals(Codes.CONTEXT_LENGTH_EXCEEDED, error.code());
      assertEquals(Category.FIXABLE, error.category());
      assertFalse(error.retryable());
      assertEquals(2048, error.details().get("max_model_len"));
      assertEquals(4000, error.details().get("max_tokens"));
      assertTrue(
          error.getMessage().contains("context_length_exceeded, HTTP 400, request "),
          error.getMessage());
      assertTrue(error.getMessage().endsWith(error.action()), error.getMessage());
      assertEquals(1, server.requests().size());
    }
  }

  @Test
  void whatMayPassIsTriedAgainAndTold() throws Exception {
    try (ScriptedServer server =
            server(List.of(failure(503, "engine_unavailable", "loading"), answer("Hi")));
        LastwordClient client = client(server)) {
      Completed done = client.chat().completions().create(HI);
      assertEquals(2, done.attempts().size());
      assertEquals("engine_unavailable", done.attempts().get(0).code());
      assertNull(done.attempts().get(1).code());
    }
  }

  @Test
  void anAsynchronousAnswerComesOrFailsOrIsCancelled() throws Exception {
    Map<String, Object> silent = Map.of("status", 200, "steps", List.of(silence()));
    try (ScriptedServer server =
            server(List.of(answer("Hi"), failure(400, 400, TOO_LONG), silent));
        LastwordClient client = client(server)) {
      assertEquals(
          "Hi", client.chat().completions().createAsync(HI).get(5, TimeUnit.SECONDS).text());
      CompletableFuture<Completed> failed = client.chat().completions().createAsync(HI);
      CompletionException thrown = assertThrows(CompletionException.class, failed::join);
      assertInstanceOf(ContextLengthExceededException.class, thrown.getCause());
      CompletableFuture<Completed> left = client.chat().completions().createAsync(HI);
      assertTrue(ScriptedServer.becomes(() -> server.requests().size() == 3, 5000));
      assertTrue(left.cancel(true));
      assertTrue(ScriptedServer.becomes(() -> server.requests().get(2).disconnectedAt != 0, 2000));
    }
  }

  @Test
  void closingTheClientCancelsWhatRuns() throws Exception {
    try (ScriptedServer server =
        server(List.of(Map.of("status", 200, "steps", List.of(silence()))))) {
      LastwordClient client = client(server);
      CompletableFuture.delayedExecutor(200, TimeUnit.MILLISECONDS).execute(client::close);
      assertThrows(CancelledException.class, () -> client.chat().completions().create(HI));
      CancelledException after =
          assertThrows(CancelledException.class, () -> client.chat().completions().create(HI));
      assertTrue(after.getMessage().contains("nothing was sent"));
      assertEquals(1, server.requests().size());
    }
  }

  @ParameterizedTest
  @ValueSource(strings = {"[{}]", "[{\"id\": null}]", "[null]", "[\"m\"]"})
  void aModelWithoutAnIdIsMalformed(String data) throws Exception {
    Map<String, Object> body = Map.of("object", "list", "data", Json.parse(data));
    try (ScriptedServer server = server(List.of(json(200, body)));
        LastwordClient client = builder(server).retry(RetryPolicy.never()).build()) {
      LastwordException error = assertThrows(LastwordException.class, client::models);
      assertEquals(Codes.MALFORMED_RESPONSE, error.code());
    }
  }

  @Test
  void whatCannotBeSentIsNamed() {
    try (LastwordClient client =
        LastwordClient.builder().baseUrl("http://127.0.0.1:9/v1").build()) {
      ChatRequest strange =
          ChatRequest.builder().model("m").user("hi").set("seed", new Object()).build();
      InvalidRequestException error =
          assertThrows(
              InvalidRequestException.class, () -> client.chat().completions().create(strange));
      assertEquals("seed", error.param());
      ChatRequest id = ChatRequest.builder().model("m").user("hi").requestId("a b").build();
      assertEquals(
          "x-request-id",
          assertThrows(InvalidRequestException.class, () -> client.chat().completions().create(id))
              .param());
      ChatRequest header =
          ChatRequest.builder().model("m").user("hi").header("x-y", "a\nb").build();
      assertEquals(
          "x-y",
          assertThrows(
                  InvalidRequestException.class, () -> client.chat().completions().create(header))
              .param());
      assertInstanceOf(Failed.class, client.chat().completions().tryCreate(strange));
    }
  }

  @Test
  void settingsThatCannotWorkAreRefusedAtOnce() {
    List<Runnable> wrong = new ArrayList<>();
    for (String url :
        List.of(
            "",
            "127.0.0.1:8000",
            "ftp://x",
            "http://",
            "http://x:99999",
            "http://x:0/v1",
            "http://a b/")) {
      wrong.add(() -> LastwordClient.builder().baseUrl(url).build());
    }
    wrong.add(() -> LastwordClient.builder().baseUrl("http://x/v1").apiKey("a\nb").build());
    wrong.add(() -> RetryPolicy.defaults().withMaxAttempts(0));
    wrong.add(() -> RetryPolicy.defaults().withBudget(-1));
    wrong.add(() -> Timeouts.defaults().withIdle(Duration.ZERO));
    wrong.add(() -> ChatRequest.builder().set("stream", true));
    for (Runnable each : wrong) {
      String message = assertThrows(IllegalArgumentException.class, each::run).getMessage();
      assertTrue(message.contains(": "), message);
    }
  }

  @ParameterizedTest
  @ValueSource(
      strings = {
        "http://x/v1?api-key=s3cret",
        "http://x/v1#s3cret",
        "http://u:s3cret@x/v1",
        "http://u:s3cret@x_y:8000/v1",
        "http://x_y/v1?key=s3cret",
        "http://u:s3cret/x@h/v1",
        "http://u:s3cret#x@h/v1",
        "http://h/v1?k=a b\ns3cret",
        "u:s3cret@x/v1?key=s3cret"
      })
  void noFormOfABaseUrlShowsItsSecrets(String url) {
    String message = refused(url);
    assertFalse(message.contains("s3cret"), message);
  }

  @ParameterizedTest
  @CsvSource({
    "http://u:p@x/v1, there is a user",
    "http://x/v1?k=1, there is a ?",
    "http://x_y/v1, underscore"
  })
  void aBaseUrlIsToldWhatIsWrongWithIt(String url, String told) {
    String message = refused(url);
    assertTrue(message.contains(told), message);
  }

  private static String refused(String url) {
    LastwordClient.Builder builder = LastwordClient.builder().baseUrl(url);
    return assertThrows(IllegalArgumentException.class, builder::build).getMessage();
  }

  /** The JDK has a client, and a thread, for each limit. */
  @Test
  void asManyLimitsAsCallsAreNotAsManyThreads() throws Exception {
    int calls = 100;
    try (ScriptedServer server = server(Collections.nCopies(calls, answer("Hi")));
        LastwordClient client = client(server)) {
      for (int i = 0; i < calls; i++) {
        Timeouts limits = Timeouts.defaults().withConnect(Duration.ofMillis(2_000 + i));
        ChatRequest request = ChatRequest.builder().model("m").user("hi").timeouts(limits).build();
        assertEquals("Hi", client.chat().completions().create(request).text());
      }
      long selectors =
          Thread.getAllStackTraces().keySet().stream()
              .filter(each -> each.getName().contains("SelectorManager"))
              .count();
      assertTrue(selectors < calls / 2, selectors + " of them");
    }
  }

  @Test
  void aNumberThatIsNoJsonIsRefused() {
    Number evil =
        new java.util.concurrent.atomic.AtomicInteger(1) {
          private static final long serialVersionUID = 1L;

          @Override
          public String toString() {
            return "1, \"model\": \"x\"";
          }
        };
    try (LastwordClient client =
        LastwordClient.builder().baseUrl("http://127.0.0.1:9/v1").build()) {
      ChatRequest request = ChatRequest.builder().model("m").user("hi").set("seed", evil).build();
      InvalidRequestException error =
          assertThrows(
              InvalidRequestException.class, () -> client.chat().completions().create(request));
      assertEquals("seed", error.param());
    }
  }

  @Test
  void whatIsNullIsNamed() {
    Map<String, Runnable> nulls =
        Map.of(
            "name of the member", () -> ChatRequest.builder().set(null, 1),
            "stop", () -> ChatRequest.builder().stop((String[]) null),
            "a text of stop", () -> ChatRequest.builder().stop("a", null),
            "prompts", () -> CompletionRequest.builder().prompts(null),
            "maxHint", () -> RetryPolicy.defaults().withMaxHint(null),
            "model", () -> ChatRequest.builder().model(null),
            "content of the message of role user", () -> ChatRequest.builder().user(null));
    nulls.forEach(
        (name, call) ->
            assertEquals(name, assertThrows(NullPointerException.class, call::run).getMessage()));
  }
}
