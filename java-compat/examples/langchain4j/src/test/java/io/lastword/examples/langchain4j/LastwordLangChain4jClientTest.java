package io.lastword.examples.langchain4j;

import static io.lastword.Answers.TOO_LONG;
import static io.lastword.Answers.answer;
import static io.lastword.Answers.client;
import static io.lastword.Answers.failure;
import static io.lastword.Answers.server;
import static io.lastword.Answers.silence;
import static io.lastword.Answers.stream;
import static io.lastword.Answers.toolCall;
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
import java.nio.charset.StandardCharsets;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CopyOnWriteArrayList;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/** LangChain4j's own models over lastword, on real sockets. */
@Timeout(30)
class LastwordLangChain4jClientTest {

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
      // LangChain4j's own client asks for h2c, and vLLM then reads an empty body.
      assertNull(request.headers.get("upgrade"));
      assertTrue(
          new String(request.body, StandardCharsets.UTF_8).contains("\"seed\":7"),
          "what else the model was given");
    }
  }

  @Test
  void aWholeStream() throws Exception {
    try (ScriptedServer server = server(List.of(stream("[DONE]", "Hel", "lo")));
        LastwordClient client = client(server)) {
      RecordingHandler handler = new RecordingHandler();
      streaming(client).chat("hi", handler);
      handler.becomes("Hel", "lo", "complete");
      assertEquals("Hello", handler.response.aiMessage().text());
      assertEquals(FinishReason.STOP, handler.response.finishReason());
      assertTrue(
          new String(server.requests().get(0).body, StandardCharsets.UTF_8)
              .contains("\"include_usage\":true"));
    }
  }

  @Test
  void aStreamThatIsCutEndsInOneErrorAndIsNeverComplete() throws Exception {
    try (ScriptedServer server = server(List.of(stream(Map.of("end", "truncate"), "Hel")));
        LastwordClient client = client(server)) {
      RecordingHandler handler = new RecordingHandler();
      streaming(client).chat("hi", handler);
      LastwordException error = handler.error("Hel", "error");
      assertEquals(Codes.STREAM_INCOMPLETE, error.code());
      assertEquals("Hel", error.partial().text());
    }
  }

  @Test
  void aStreamThatEndsWithoutDoneOrFinishReasonIsCutToo() throws Exception {
    try (ScriptedServer server = server(List.of(stream(Map.of("end", "complete"), "Hel")));
        LastwordClient client = client(server)) {
      RecordingHandler handler = new RecordingHandler();
      streaming(client).chat("hi", handler);
      assertEquals(Codes.STREAM_INCOMPLETE, handler.error("Hel", "error").code());
    }
  }

  @Test
  void anErrorWithinAStreamIsOneThatIsTold() throws Exception {
    Map<String, Object> error =
        Map.of(
            "data",
            Map.of("error", Map.of("message", "EngineCore died", "type", "x", "code", 500)));
    try (ScriptedServer server = server(List.of(stream(error, "Hel")));
        LastwordClient client = client(server)) {
      RecordingHandler handler = new RecordingHandler();
      streaming(client).chat("hi", handler);
      LastwordException told = handler.error("Hel", "error");
      assertEquals(Codes.INTERNAL_SERVER_ERROR, told.code());
      assertEquals("EngineCore died", told.info().message());
    }
  }

  @Test
  void aToolCallThatIsCutIsNotRun() throws Exception {
    try (ScriptedServer server =
            server(List.of(toolCall(Map.of("end", "complete"), "{\"path\": \"/tm")));
        LastwordClient client = client(server)) {
      RecordingHandler handler = new RecordingHandler();
      streaming(client).chat("hi", handler);
      handler.error("error");
    }
  }

  @Test
  void aWholeToolCallIs() throws Exception {
    try (ScriptedServer server = server(List.of(toolCall("[DONE]", "{\"path\": \"/tmp\"}")));
        LastwordClient client = client(server)) {
      RecordingHandler handler = new RecordingHandler();
      streaming(client).chat("hi", handler);
      handler.becomes("complete");
      ToolExecutionRequest request = handler.response.aiMessage().toolExecutionRequests().get(0);
      assertEquals("{\"path\": \"/tmp\"}", request.arguments());
    }
  }

  @Test
  void contextLengthExceededHasItsNumbersAndIsSentOnce() throws Exception {
    try (ScriptedServer server = server(List.of(failure(400, 400, TOO_LONG)));
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
    try (ScriptedServer server = server(List.of(failure(400, 400, TOO_LONG)));
        LastwordClient client = client(server)) {
      RecordingHandler handler = new RecordingHandler();
      streaming(client).chat("hi", handler);
      LastwordException error = handler.error("error");
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
    try (ScriptedServer server = server(List.of(stream(silence(), "Hel")));
        LastwordClient client = client(server)) {
      RecordingHandler handler =
          new RecordingHandler() {
            @Override
            public void onPartialResponse(PartialResponse part, PartialResponseContext context) {
              super.onPartialResponse(part, context);
              context.streamingHandle().cancel();
            }
          };
      streaming(client).chat("hi", handler);
      handler.becomes("Hel");
      assertTrue(ScriptedServer.becomes(() -> server.requests().get(0).disconnectedAt != 0, 2000));
      handler.becomes("Hel");
    }
  }

  @Test
  void aHostThatIsNotKnownIsNoExceptionOfLangChain4js() throws Exception {
    RetryPolicy once = RetryPolicy.never();
    try (LastwordClient client =
        LastwordClient.builder().baseUrl("http://host.invalid/v1").retry(once).build()) {
      OpenAiChatModel model = chat(client);
      assertThrows(LastwordException.class, () -> model.chat("hi"));
      RecordingHandler handler = new RecordingHandler();
      streaming(client).chat("hi", handler);
      handler.error("error");
    }
  }

  @Test
  void anotherServerThanTheClientsIsRefused() throws Exception {
    try (ScriptedServer server = server(List.of());
        LastwordClient client = client(server)) {
      OpenAiChatModel model =
          OpenAiChatModel.builder()
              .httpClientBuilder(LastwordLangChain4jClient.builder(client))
              .maxRetries(0)
              .build();
      assertThrows(UnsupportedFeatureException.class, () -> model.chat("hi"));
    }
  }

  private static OpenAiChatModel chat(LastwordClient client) {
    return OpenAiChatModel.builder()
        .httpClientBuilder(LastwordLangChain4jClient.builder(client))
        .baseUrl(client.baseUrl())
        .modelName("m")
        .customParameters(Map.of("seed", 7))
        .maxRetries(0)
        .build();
  }

  private static OpenAiStreamingChatModel streaming(LastwordClient client) {
    return OpenAiStreamingChatModel.builder()
        .httpClientBuilder(LastwordLangChain4jClient.builder(client))
        .baseUrl(client.baseUrl())
        .modelName("m")
        .build();
  }

  /** What a handler was told, in order. */
  private static class RecordingHandler implements StreamingChatResponseHandler {
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
