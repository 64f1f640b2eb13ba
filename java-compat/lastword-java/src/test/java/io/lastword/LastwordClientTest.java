package io.lastword;

import static io.lastword.Answers.HI;
import static io.lastword.Answers.answer;
import static io.lastword.Answers.builder;
import static io.lastword.Answers.client;
import static io.lastword.Answers.failure;
import static io.lastword.Answers.server;
import static io.lastword.Answers.silence;
import static io.lastword.Answers.stream;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertInstanceOf;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertSame;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.lastword.errors.CancelledException;
import io.lastword.errors.ContextLengthExceededException;
import io.lastword.errors.InvalidRequestException;
import io.lastword.errors.InvalidToolArgumentsException;
import io.lastword.errors.LastwordException;
import io.lastword.errors.RequestTimeoutException;
import io.lastword.errors.StreamIncompleteException;
import io.lastword.scripted.Received;
import io.lastword.scripted.ScriptedServer;
import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Base64;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionException;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicReference;
import java.util.zip.GZIPOutputStream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/** What a caller of the client sees, on real sockets. */
@Timeout(30)
class LastwordClientTest {

  private static final String VLLM =
      "This model's maximum context length is 2048 tokens. However, you requested 4000 output tokens and your prompt contains"
          + " at least 12 input tokens";

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
      assertNull(
          request.headers.get(
              "upgrade")); // the JDK's default asks for h2c, and vLLM then reads an empty body
      assertTrue(
          ScriptedServer.becomes(() -> server.problems().isEmpty(), 2000),
          () -> server.problems().toString());
    }
  }

  @Test
  void anErrorHasItsNumbersAndIsNotSentTwice() throws Exception {
    try (ScriptedServer server = server(List.of(failure(400, 400, VLLM)));
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
  void aStreamThatIsCutThrowsWhereTheLoopWouldHaveEnded() throws Exception {
    try (ScriptedServer server = server(List.of(stream(Map.of("end", "truncate"), "Hel", "lo")));
        LastwordClient client = client(server);
        AnswerStream stream = client.chat().completions().createStreaming(HI)) {
      StringBuilder text = new StringBuilder();
      StreamIncompleteException error =
          assertThrows(
              StreamIncompleteException.class,
              () -> {
                for (Chunk chunk : stream) {
                  text.append(chunk.text());
                }
              });
      assertEquals("Hello", text.toString());
      assertEquals("Hello", error.partial().text());
      assertInstanceOf(Incomplete.class, stream.outcome());
      assertSame(
          error,
          assertThrows(StreamIncompleteException.class, stream::hasNext),
          "the same each time");
    }
  }

  @Test
  void aWholeStreamEndsQuietly() throws Exception {
    try (ScriptedServer server = server(List.of(stream("[DONE]", "Hel", "lo")));
        LastwordClient client = client(server);
        AnswerStream stream = client.chat().completions().createStreaming(HI)) {
      assertNull(stream.outcome());
      List<String> texts = stream.stream().map(Chunk::text).toList();
      assertEquals(List.of("Hel", "lo", ""), texts);
      assertEquals("Hello", assertInstanceOf(Completed.class, stream.outcome()).text());
    }
  }

  @Test
  void closingFromAnotherThreadEndsTheWaitAndTheSocket() throws Exception {
    try (ScriptedServer server = server(List.of(stream(silence(), "Hel")));
        LastwordClient client = client(server);
        AnswerStream stream = client.chat().completions().createStreaming(HI)) {
      stream.next();
      CompletableFuture.delayedExecutor(200, TimeUnit.MILLISECONDS).execute(stream::close);
      CancelledException error = assertThrows(CancelledException.class, stream::hasNext);
      assertEquals("Hel", error.partial().text());
      assertTrue(ScriptedServer.becomes(() -> server.requests().get(0).disconnectedAt != 0, 2000));
      assertInstanceOf(Cancelled.class, stream.outcome());
    }
  }

  @Test
  void anInterruptEndsTheWaitAndTheSocketAndStaysSet() throws Exception {
    try (ScriptedServer server = server(List.of(stream(silence(), "Hel")));
        LastwordClient client = client(server)) {
      AtomicReference<Throwable> thrown = new AtomicReference<>();
      Thread reader =
          new Thread(
              () -> {
                try (AnswerStream stream = client.chat().completions().createStreaming(HI)) {
                  stream.forEach(chunk -> {});
                } catch (CancelledException e) {
                  thrown.set(
                      Thread.currentThread().isInterrupted()
                          ? e
                          : new AssertionError("the flag is lost"));
                }
              });
      reader.start();
      assertTrue(ScriptedServer.becomes(() -> !server.requests().isEmpty(), 5000));
      Thread.sleep(200);
      reader.interrupt();
      reader.join(5000);
      assertInstanceOf(CancelledException.class, thrown.get());
      assertTrue(thrown.get().getMessage().contains("interrupted"));
      assertTrue(ScriptedServer.becomes(() -> server.requests().get(0).disconnectedAt != 0, 2000));
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

  @Test
  void aStreamThatIsDroppedIsClosedOnceItIsCollected() throws Exception {
    try (ScriptedServer server = server(List.of(stream(silence(), "Hel")));
        LastwordClient client = client(server)) {
      client.chat().completions().createStreaming(HI).next();
      assertTrue(
          ScriptedServer.becomes(
              () -> {
                System.gc();
                return server.requests().get(0).disconnectedAt != 0;
              },
              10_000));
    }
  }

  @Test
  void theTimersRunOverTheBody() throws Exception {
    try (ScriptedServer server = server(List.of(stream(silence(), "Hel")));
        LastwordClient client =
            builder(server).timeouts(Timeouts.defaults().withIdle(Duration.ofMillis(300))).build();
        AnswerStream stream = client.chat().completions().createStreaming(HI)) {
      stream.next();
      RequestTimeoutException error = assertThrows(RequestTimeoutException.class, stream::hasNext);
      assertEquals(Timer.IDLE, error.timer());
      assertEquals(Codes.GENERATION_STALLED, error.code());
      assertEquals(Origin.CLIENT, error.origin());
      assertEquals(Timer.IDLE, error.attempts().get(0).timer());
    }
  }

  @Test
  void theCallersOwnTimeIsNotTheServersSilence() throws Exception {
    try (ScriptedServer server = server(List.of(stream("[DONE]", "Hel", "lo")));
        LastwordClient client =
            builder(server).timeouts(Timeouts.defaults().withIdle(Duration.ofMillis(200))).build();
        AnswerStream stream = client.chat().completions().createStreaming(HI)) {
      for (Chunk chunk : stream) {
        Thread.sleep(300);
      }
      assertInstanceOf(Completed.class, stream.outcome());
    }
  }

  @Test
  void anAsynchronousAnswerComesOrFailsOrIsCancelled() throws Exception {
    Map<String, Object> silent = Map.of("status", 200, "steps", List.of(silence()));
    try (ScriptedServer server = server(List.of(answer("Hi"), failure(400, 400, VLLM), silent));
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
  void aBodyThatCameCompressedIsReadAllTheSame() throws Exception {
    Map<String, Object> encoded =
        Map.of("content-encoding", "gzip", "content-type", "application/json");
    String body =
        "{\"choices\": [{\"index\": 0, \"message\": {\"content\": \"Hi\"}, \"finish_reason\": \"stop\"}]}";
    byte[] whole = gzip(body);
    byte[] cut = Arrays.copyOf(whole, whole.length - 12);
    List<Map<String, Object>> exchanges = new ArrayList<>();
    for (byte[] each : List.of(whole, cut, "no gzip at all".getBytes(StandardCharsets.UTF_8))) {
      Map<String, Object> step = Map.of("base64", Base64.getEncoder().encodeToString(each));
      exchanges.add(Map.of("status", 200, "headers", encoded, "steps", List.of(step)));
    }
    Map<String, Object> brotli = Map.of("content-encoding", "br");
    exchanges.add(Map.of("status", 200, "headers", brotli, "steps", List.of(Map.of("text", "?"))));
    exchanges.add(answer("Ho"));
    byte[] packed = gzip("{\"error\": {\"message\": \"" + VLLM + "\", \"code\": 400}}");
    Map<String, Object> step = Map.of("base64", Base64.getEncoder().encodeToString(packed));
    Map<String, Object> layered = Map.of("content-encoding", "identity, gzip");
    exchanges.add(Map.of("status", 400, "headers", layered, "steps", List.of(step)));
    try (ScriptedServer server = server(exchanges);
        LastwordClient client = builder(server).retry(RetryPolicy.never()).build()) {
      Endpoint<ChatRequest> chat = client.chat().completions();
      assertEquals("Hi", chat.create(HI).text());
      assertEquals(
          Codes.STREAM_INCOMPLETE,
          assertThrows(StreamIncompleteException.class, () -> chat.create(HI)).code());
      for (String part : List.of("cannot be decoded", "encoded as br")) {
        StreamIncompleteException error =
            assertThrows(StreamIncompleteException.class, () -> chat.create(HI));
        assertEquals(Codes.MALFORMED_RESPONSE, error.code());
        assertTrue(error.getMessage().contains(part), error.getMessage());
      }
      assertEquals("Ho", chat.create(HI).text());
      ContextLengthExceededException refused =
          assertThrows(ContextLengthExceededException.class, () -> chat.create(HI));
      assertEquals(2048, refused.maxModelLen().getAsInt());
    }
  }

  private static byte[] gzip(String text) throws IOException {
    ByteArrayOutputStream bytes = new ByteArrayOutputStream();
    try (GZIPOutputStream out = new GZIPOutputStream(bytes)) {
      out.write(text.getBytes(StandardCharsets.UTF_8));
    }
    return bytes.toByteArray();
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
            "http://a b/",
            "http://x/v1?api-version=1",
            "http://x/v1#f",
            "http://u:p@x/v1")) {
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

  @Test
  void toolArgumentsAreParsedOrRefusedButNeverRepaired() {
    assertEquals(
        Map.of("city", "Rome"),
        new ToolCall("1", "weather", "{\"city\": \"Rome\"}", 0, 0).arguments());
    assertEquals(Map.of(), new ToolCall("1", "weather", " ", 0, 0).arguments());
    for (String text : List.of("{\"city\": \"Ro", "[1]", "{\"t\": NaN}")) {
      ToolCall call = new ToolCall("1", "weather", text, 0, 0);
      InvalidToolArgumentsException error =
          assertThrows(InvalidToolArgumentsException.class, call::arguments);
      assertEquals(OutcomeName.COMPLETED, error.outcome());
      assertEquals(text, error.raw());
      assertSame(call, error.toolCall());
      assertFalse(error.getMessage().contains("Ro"), error.getMessage());
    }
  }

  @Test
  void everyCodeHasItsExceptionAndOutcome() {
    for (String code : io.lastword.core.Registry.CODES.keySet()) {
      LastwordException error =
          LastwordException.of(
              io.lastword.core.Classifier.error(code, "m").build(),
              Partial.NOTHING,
              List.of(),
              null);
      assertEquals(code, error.code());
      Outcome outcome = Outcome.of(error);
      assertEquals(error.outcome(), outcome.name());
      assertSame(error, assertThrows(LastwordException.class, outcome::orThrow));
    }
  }
}
