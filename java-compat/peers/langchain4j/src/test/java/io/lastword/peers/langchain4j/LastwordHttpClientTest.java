package io.lastword.peers.langchain4j;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertInstanceOf;
import static org.junit.jupiter.api.Assertions.assertNotNull;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import dev.langchain4j.agent.tool.ToolExecutionRequest;
import dev.langchain4j.data.message.UserMessage;
import dev.langchain4j.exception.UnsupportedFeatureException;
import dev.langchain4j.model.chat.response.ChatResponse;
import dev.langchain4j.model.chat.response.PartialResponse;
import dev.langchain4j.model.chat.response.PartialResponseContext;
import dev.langchain4j.model.chat.response.StreamingChatResponseHandler;
import dev.langchain4j.model.openai.OpenAiChatModel;
import dev.langchain4j.model.openai.OpenAiStreamingChatModel;
import dev.langchain4j.model.output.FinishReason;
import io.lastword.Codes;
import io.lastword.LastwordClient;
import io.lastword.RetryPolicy;
import io.lastword.errors.ContextLengthExceededException;
import io.lastword.errors.EngineUnavailableException;
import io.lastword.errors.LastwordException;
import io.lastword.scripted.Received;
import io.lastword.scripted.ScriptedServer;
import io.lastword.scripted.ScriptedServer.Listening;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CopyOnWriteArrayList;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/** LangChain4j's own models over lastword, on real sockets. */
@Timeout(30)
class LastwordHttpClientTest {

  private static final String VLLM =
      "This model's maximum context length is 2048 tokens. However, you requested 4000 output tokens and your prompt contains"
          + " at least 12 input tokens";

  @Test
  void aWholeAnswer() throws Exception {
    try (ScriptedServer server = server(List.of(answer("Hello")));
        LastwordClient client = client(server)) {
      ChatResponse response = chat(client).chat(UserMessage.from("hi"));
      assertEquals("Hello", response.aiMessage().text());
      assertEquals(FinishReason.STOP, response.finishReason());
      Received request = server.requests().get(0);
      assertEquals("Bearer k", request.headers.get("authorization"));
      assertEquals("langchain4j-openai", request.headers.get("user-agent"));
      assertNotNull(request.headers.get("x-request-id"));
      assertNull(
          request.headers.get(
              "upgrade")); // LangChain4j's own client asks for h2c, and vLLM then reads an empty
      // body
      assertTrue(
          new String(request.body, StandardCharsets.UTF_8).contains("\"seed\":7"),
          "what else the model was given");
    }
  }

  @Test
  void aWholeStream() throws Exception {
    try (ScriptedServer server = server(List.of(stream("[DONE]", text("Hel"), text("lo"))));
        LastwordClient client = client(server)) {
      Heard heard = new Heard();
      streaming(client).chat("hi", heard);
      heard.becomes("Hel", "lo", "complete");
      assertEquals("Hello", heard.response.aiMessage().text());
      assertEquals(FinishReason.STOP, heard.response.finishReason());
      assertTrue(
          new String(server.requests().get(0).body, StandardCharsets.UTF_8)
              .contains("\"include_usage\":true"));
    }
  }

  @Test
  void aStreamThatIsCutEndsInOneErrorAndIsNeverComplete() throws Exception {
    try (ScriptedServer server = server(List.of(stream(Map.of("end", "truncate"), text("Hel"))));
        LastwordClient client = client(server)) {
      Heard heard = new Heard();
      streaming(client).chat("hi", heard);
      LastwordException error = heard.error("Hel", "error");
      assertEquals(Codes.STREAM_INCOMPLETE, error.code());
      assertEquals("Hel", error.partial().text());
    }
  }

  @Test
  void aStreamThatEndsWithoutDoneOrFinishReasonIsCutToo() throws Exception {
    try (ScriptedServer server = server(List.of(stream(Map.of("end", "complete"), text("Hel"))));
        LastwordClient client = client(server)) {
      Heard heard = new Heard();
      streaming(client).chat("hi", heard);
      assertEquals(Codes.STREAM_INCOMPLETE, heard.error("Hel", "error").code());
    }
  }

  @Test
  void anErrorWithinAStreamIsOneThatIsTold() throws Exception {
    Map<String, Object> error =
        Map.of(
            "data",
            Map.of("error", Map.of("message", "EngineCore died", "type", "x", "code", 500)));
    try (ScriptedServer server = server(List.of(stream(error, text("Hel"))));
        LastwordClient client = client(server)) {
      Heard heard = new Heard();
      streaming(client).chat("hi", heard);
      LastwordException told = heard.error("Hel", "error");
      assertEquals(Codes.INTERNAL_SERVER_ERROR, told.code());
      assertEquals("EngineCore died", told.info().message());
    }
  }

  @Test
  void aToolCallThatIsCutIsNotRun() throws Exception {
    Map<String, Object> half = Map.of("tool_calls", List.of(call("{\"path\": \"/tm")));
    try (ScriptedServer server = server(List.of(stream(Map.of("end", "complete"), half)));
        LastwordClient client = client(server)) {
      Heard heard = new Heard();
      streaming(client).chat("hi", heard);
      heard.error("error");
    }
  }

  @Test
  void aWholeToolCallIs() throws Exception {
    Map<String, Object> whole = Map.of("tool_calls", List.of(call("{\"path\": \"/tmp\"}")));
    try (ScriptedServer server = server(List.of(stream("[DONE]", whole)));
        LastwordClient client = client(server)) {
      Heard heard = new Heard();
      streaming(client).chat("hi", heard);
      heard.becomes("complete");
      ToolExecutionRequest request = heard.response.aiMessage().toolExecutionRequests().get(0);
      assertEquals("{\"path\": \"/tmp\"}", request.arguments());
    }
  }

  @Test
  void contextLengthExceededHasItsNumbersAndIsSentOnce() throws Exception {
    try (ScriptedServer server = server(List.of(failure(400, 400, VLLM)));
        LastwordClient client = client(server)) {
      OpenAiChatModel model = chat(client);
      ContextLengthExceededException error =
          assertThrows(ContextLengthExceededException.class, () -> model.chat("hi"));
      assertEquals(2048, error.details().get("max_model_len"));
      assertEquals(4000, error.details().get("max_tokens"));
      assertEquals(1, server.requests().size());
    }
  }

  @Test
  void soItHasInAStream() throws Exception {
    try (ScriptedServer server = server(List.of(failure(400, 400, VLLM)));
        LastwordClient client = client(server)) {
      Heard heard = new Heard();
      streaming(client).chat("hi", heard);
      LastwordException error = heard.error("error");
      assertEquals(
          2048,
          assertInstanceOf(ContextLengthExceededException.class, error)
              .details()
              .get("max_model_len"));
      assertEquals(1, server.requests().size());
    }
  }

  @Test
  void lastwordTriesAgainWhereThatMayHelp() throws Exception {
    Map<String, Object> gone = failure(503, "engine_unavailable", "loading");
    try (ScriptedServer server = server(List.of(gone, answer("Hello"), gone, gone));
        LastwordClient client = client(server)) {
      assertEquals("Hello", chat(client).chat("hi"));
      OpenAiChatModel model = chat(client);
      EngineUnavailableException error =
          assertThrows(EngineUnavailableException.class, () -> model.chat("hi"));
      assertEquals(2, error.attempts().size()); // a code that is worth one retry
      assertEquals(4, server.requests().size());
    }
  }

  @Test
  void aStreamThatIsCancelledIsSilentAndItsSocketClosed() throws Exception {
    try (ScriptedServer server = server(List.of(stream(Map.of("end", "stall"), text("Hel"))));
        LastwordClient client = client(server)) {
      Heard heard =
          new Heard() {
            @Override
            public void onPartialResponse(PartialResponse part, PartialResponseContext context) {
              super.onPartialResponse(part, context);
              context.streamingHandle().cancel();
            }
          };
      streaming(client).chat("hi", heard);
      heard.becomes("Hel");
      assertTrue(ScriptedServer.becomes(() -> server.requests().get(0).disconnectedAt != 0, 2000));
      heard.becomes("Hel");
    }
  }

  @Test
  void aHostThatIsNotKnownIsNoExceptionOfLangChain4js() throws Exception {
    RetryPolicy once = RetryPolicy.never();
    try (LastwordClient client =
        LastwordClient.builder().baseUrl("http://host.invalid/v1").retry(once).build()) {
      OpenAiChatModel model = chat(client);
      assertThrows(LastwordException.class, () -> model.chat("hi"));
      Heard heard = new Heard();
      streaming(client).chat("hi", heard);
      heard.error("error");
    }
  }

  @Test
  void anotherServerThanTheClientsIsRefused() throws Exception {
    try (ScriptedServer server = server(List.of());
        LastwordClient client = client(server)) {
      OpenAiChatModel model =
          OpenAiChatModel.builder()
              .httpClientBuilder(LastwordHttpClient.builder(client))
              .maxRetries(0)
              .build();
      assertThrows(UnsupportedFeatureException.class, () -> model.chat("hi"));
    }
  }

  private static OpenAiChatModel chat(LastwordClient client) {
    return OpenAiChatModel.builder()
        .httpClientBuilder(LastwordHttpClient.builder(client))
        .baseUrl(client.baseUrl())
        .modelName("m")
        .customParameters(Map.of("seed", 7))
        .maxRetries(0)
        .build();
  }

  private static OpenAiStreamingChatModel streaming(LastwordClient client) {
    return OpenAiStreamingChatModel.builder()
        .httpClientBuilder(LastwordHttpClient.builder(client))
        .baseUrl(client.baseUrl())
        .modelName("m")
        .build();
  }

  private static LastwordClient client(ScriptedServer server) {
    RetryPolicy quick =
        RetryPolicy.defaults().withDelays(Duration.ofMillis(1), Duration.ofMillis(2));
    return LastwordClient.builder().baseUrl(server.baseUrl()).apiKey("k").retry(quick).build();
  }

  private static ScriptedServer server(List<Map<String, Object>> exchanges) throws IOException {
    return new ScriptedServer(exchanges, "event", Listening.YES);
  }

  private static Map<String, Object> text(String said) {
    return Map.of("content", said);
  }

  private static Map<String, Object> call(String arguments) {
    return Map.of(
        "index",
        0,
        "id",
        "call_1",
        "type",
        "function",
        "function",
        Map.of("name", "list", "arguments", arguments));
  }

  /** A stream of these deltas that ends as {@code last} says: {@code [DONE]}, or a step. */
  @SafeVarargs
  private static Map<String, Object> stream(Object last, Map<String, Object>... deltas) {
    List<Object> steps = new ArrayList<>();
    for (Map<String, Object> delta : deltas) {
      steps.add(chunk(delta, null));
    }
    if (last.equals("[DONE]")) {
      steps.add(chunk(Map.of(), "stop"));
      steps.add(Map.of("data", "[DONE]"));
    } else {
      steps.add(last);
    }
    return Map.of("status", 200, "steps", steps);
  }

  private static Map<String, Object> chunk(Map<String, Object> delta, String finish) {
    Map<String, Object> choice = new LinkedHashMap<>();
    choice.put("index", 0);
    choice.put("delta", delta);
    choice.put("finish_reason", finish);
    return Map.of("data", Map.of("id", "chatcmpl-1", "model", "m", "choices", List.of(choice)));
  }

  private static Map<String, Object> answer(String text) {
    Map<String, Object> message = Map.of("role", "assistant", "content", text);
    Map<String, Object> choice = Map.of("index", 0, "message", message, "finish_reason", "stop");
    return json(200, Map.of("choices", List.of(choice)));
  }

  private static Map<String, Object> failure(int status, Object code, String message) {
    return json(
        status,
        Map.of("error", Map.of("message", message, "type", "BadRequestError", "code", code)));
  }

  private static Map<String, Object> json(int status, Map<String, Object> body) {
    return Map.of(
        "status", status, "framing", "content-length", "steps", List.of(Map.of("json", body)));
  }

  /** What a handler was told, in order. */
  private static class Heard implements StreamingChatResponseHandler {
    private final List<String> told = new CopyOnWriteArrayList<>();
    private volatile ChatResponse response;
    private volatile Throwable error;

    @Override
    public void onPartialResponse(PartialResponse part, PartialResponseContext context) {
      told.add(part.text());
    }

    @Override
    public void onCompleteResponse(ChatResponse complete) {
      response = complete;
      told.add("complete");
    }

    @Override
    public void onError(Throwable thrown) {
      error = thrown;
      told.add("error");
    }

    void becomes(String... expected) throws InterruptedException {
      ScriptedServer.becomes(() -> told.equals(List.of(expected)), 5000);
      Thread.sleep(50); // nothing follows
      assertEquals(List.of(expected), told);
    }

    LastwordException error(String... expected) throws InterruptedException {
      becomes(expected);
      return assertInstanceOf(LastwordException.class, error);
    }
  }
}
