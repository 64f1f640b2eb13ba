package io.lastword.peers.springai;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertInstanceOf;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTimeout;
import static org.junit.jupiter.api.Assertions.assertTrue;

import com.openai.client.OpenAIClient;
import com.openai.errors.BadRequestException;
import io.lastword.Codes;
import io.lastword.errors.ContextLengthExceededException;
import io.lastword.errors.LastwordException;
import io.lastword.openai.LastwordErrors;
import io.lastword.openai.LastwordOpenAIException;
import io.lastword.scripted.Received;
import io.lastword.scripted.ScriptedServer;
import io.lastword.scripted.ScriptedServer.Listening;
import java.io.IOException;
import java.time.Duration;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.springframework.ai.chat.messages.AssistantMessage;
import org.springframework.ai.chat.model.ChatResponse;
import org.springframework.ai.chat.model.Generation;
import org.springframework.ai.chat.prompt.Prompt;
import org.springframework.ai.openai.OpenAiChatModel;
import org.springframework.ai.openai.OpenAiChatOptions;
import reactor.core.Disposable;
import reactor.core.scheduler.Schedulers;

/** Spring AI's own model over lastword, on real sockets. */
@Timeout(30)
class LastwordChatModelsTest {

  private static final String VLLM =
      "This model's maximum context length is 2048 tokens. However, you requested 4000 output tokens and your prompt contains"
          + " at least 12 input tokens";
  private static final Prompt HI = new Prompt("hi");

  private final List<OpenAIClient> clients = new ArrayList<>();

  @AfterEach
  void close() {
    clients.forEach(OpenAIClient::close);
  }

  @Test
  void aWholeAnswer() throws Exception {
    try (ScriptedServer server = server(List.of(answer("Hello")))) {
      Generation answer = model(server).call(HI).getResult();
      assertEquals("Hello", answer.getOutput().getText());
      assertEquals("STOP", answer.getMetadata().getFinishReason());
      Received request = server.requests().get(0);
      assertEquals("Bearer k", request.headers.get("authorization"));
      assertNull(request.headers.get("upgrade"));
    }
  }

  @Test
  void aWholeStream() throws Exception {
    try (ScriptedServer server = server(List.of(stream("[DONE]", text("Hel"), text("lo"))))) {
      Heard heard = new Heard(model(server));
      heard.becomes("Hel", "lo", "complete");
    }
  }

  @Test
  void aStreamThatIsCutEndsInAnErrorAndIsNeverComplete() throws Exception {
    try (ScriptedServer server = server(List.of(stream(Map.of("end", "truncate"), text("Hel"))))) {
      Heard heard = new Heard(model(server));
      LastwordException error = heard.error("Hel", "error");
      assertEquals(Codes.STREAM_INCOMPLETE, error.code());
      assertEquals("Hel", error.partial().text());
      assertInstanceOf(LastwordOpenAIException.class, heard.error);
    }
  }

  @Test
  void aStreamThatEndsWithoutDoneOrFinishReasonIsCutToo() throws Exception {
    try (ScriptedServer server = server(List.of(stream(Map.of("end", "complete"), text("Hel"))))) {
      assertEquals(Codes.STREAM_INCOMPLETE, new Heard(model(server)).error("Hel", "error").code());
    }
  }

  @Test
  void anErrorWithinAStreamHasItsCode() throws Exception {
    Map<String, Object> error =
        Map.of(
            "data",
            Map.of("error", Map.of("message", "EngineCore died", "type", "x", "code", 500)));
    try (ScriptedServer server = server(List.of(stream(error, text("Hel"))))) {
      LastwordException told = new Heard(model(server)).error("Hel", "error");
      assertEquals(Codes.INTERNAL_SERVER_ERROR, told.code());
      assertEquals("EngineCore died", told.info().message());
    }
  }

  @Test
  void aToolCallThatIsCutIsNotHandedOver() throws Exception {
    Map<String, Object> half = Map.of("tool_calls", List.of(call("{\"path\": \"/tm")));
    try (ScriptedServer server = server(List.of(stream(Map.of("end", "complete"), half)))) {
      Heard heard = new Heard(model(server));
      heard.error("error");
      assertEquals(List.of(), heard.calls);
    }
  }

  @Test
  void aWholeToolCallIs() throws Exception {
    Map<String, Object> whole = Map.of("tool_calls", List.of(call("{\"path\": \"/tmp\"}")));
    try (ScriptedServer server = server(List.of(stream("[DONE]", "tool_calls", whole)))) {
      Heard heard = new Heard(model(server));
      heard.becomes("complete");
      assertEquals("{\"path\": \"/tmp\"}", heard.calls.get(0).arguments());
    }
  }

  @Test
  void contextLengthExceededHasItsNumbersAndIsSentOnce() throws Exception {
    try (ScriptedServer server = server(List.of(failure(400, 400, VLLM)))) {
      OpenAiChatModel model = model(server);
      BadRequestException thrown = assertThrows(BadRequestException.class, () -> model.call(HI));
      assertEquals(
          Codes.CONTEXT_LENGTH_EXCEEDED, thrown.code().orElseThrow()); // 400 in what vLLM sent
      LastwordException error = LastwordErrors.of(thrown).orElseThrow();
      assertEquals(
          2048,
          assertInstanceOf(ContextLengthExceededException.class, error)
              .details()
              .get("max_model_len"));
      assertEquals(4000, error.details().get("max_tokens"));
      assertEquals(1, server.requests().size());
    }
  }

  @Test
  void soItHasInAStream() throws Exception {
    try (ScriptedServer server = server(List.of(failure(400, 400, VLLM)))) {
      LastwordException error = new Heard(model(server)).error("error");
      assertEquals(
          2048,
          assertInstanceOf(ContextLengthExceededException.class, error)
              .details()
              .get("max_model_len"));
      assertEquals(1, server.requests().size());
    }
  }

  @Test
  void openaiJavaTriesAgainWhereThatMayHelp() throws Exception {
    Map<String, Object> gone = failure(503, "engine_unavailable", "loading");
    try (ScriptedServer server =
        server(List.of(gone, answer("Hello"), gone, stream("[DONE]", text("Hi"))))) {
      assertEquals("Hello", model(server).call(HI).getResult().getOutput().getText());
      new Heard(model(server)).becomes("Hi", "complete");
      assertEquals(4, server.requests().size());
    }
  }

  @Test
  void aStreamThatIsLeftAtAChunkIsClosedAtOnce() throws Exception {
    try (ScriptedServer server = server(List.of(stream(Map.of("end", "stall"), text("Hel"))))) {
      assertEquals("Hel", model(server).stream(HI).blockFirst().getResult().getOutput().getText());
      assertTrue(ScriptedServer.becomes(() -> server.requests().get(0).disconnectedAt != 0, 2000));
    }
  }

  @Test
  void oneThatIsSilentIsLeftByAnotherThread() throws Exception {
    try (ScriptedServer server = server(List.of(stream(Map.of("end", "stall"), text("Hel"))))) {
      CountDownLatch begun = new CountDownLatch(1);
      Disposable subscription =
          model(server).stream(HI)
              .cancelOn(Schedulers.boundedElastic())
              .subscribe(response -> begun.countDown());
      assertTrue(begun.await(5, TimeUnit.SECONDS));
      assertTimeout(Duration.ofSeconds(2), subscription::dispose);
    }
  }

  private OpenAiChatModel model(ScriptedServer server) {
    OpenAIClient client = LastwordChatModels.client(server.baseUrl(), "k");
    clients.add(client);
    return LastwordChatModels.model(client, OpenAiChatOptions.builder().model("m").build());
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

  @SafeVarargs
  private static Map<String, Object> stream(Object last, Map<String, Object>... deltas) {
    return stream(last, "stop", deltas);
  }

  /** A stream of these deltas that ends as {@code last} says: {@code [DONE]}, or a step. */
  @SafeVarargs
  private static Map<String, Object> stream(
      Object last, String finish, Map<String, Object>... deltas) {
    List<Object> steps = new ArrayList<>();
    for (Map<String, Object> delta : deltas) {
      steps.add(chunk(delta, null));
    }
    if (last.equals("[DONE]")) {
      steps.add(chunk(Map.of(), finish));
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
    return json(200, Map.of("id", "chatcmpl-1", "model", "m", "choices", List.of(choice)));
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

  /** What a subscriber was told, in order; texts that are empty are left out. */
  private static final class Heard {
    private final List<String> told = new CopyOnWriteArrayList<>();
    private final List<AssistantMessage.ToolCall> calls = new CopyOnWriteArrayList<>();
    private volatile Throwable error;

    Heard(OpenAiChatModel model) {
      model.stream(HI).subscribe(this::next, this::failed, () -> told.add("complete"));
    }

    private void next(ChatResponse response) {
      AssistantMessage message = response.getResult().getOutput();
      calls.addAll(message.getToolCalls());
      if (!message.getText().isEmpty()) {
        told.add(message.getText());
      }
    }

    private void failed(Throwable thrown) {
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
      return LastwordErrors.of(error).orElseThrow();
    }
  }
}
