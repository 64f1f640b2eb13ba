package io.lastword.examples.springai;

import static io.lastword.Answers.TOO_LONG;
import static io.lastword.Answers.answer;
import static io.lastword.Answers.failure;
import static io.lastword.Answers.json;
import static io.lastword.Answers.server;
import static io.lastword.Answers.silence;
import static io.lastword.Answers.stream;
import static io.lastword.Answers.toolCall;
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
import java.time.Duration;
import java.util.ArrayList;
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
  void membersThatOpenAiDoesNotHaveDoNoHarm() throws Exception {
    Map<String, Object> message = Map.of("role", "assistant", "content", "Hello");
    Map<String, Object> choice = Map.of("index", 0, "message", message, "finish_reason", "stop");
    List<Object> choices = List.of(choice);
    Map<String, Object> body =
        Map.of("id", "1", "model", "m", "choices", choices, "kv_transfer_params", Map.of());
    try (ScriptedServer server = server(List.of(json(200, body)))) {
      assertEquals("Hello", model(server).call(HI).getResult().getOutput().getText());
    }
  }

  @Test
  void aWholeStream() throws Exception {
    try (ScriptedServer server = server(List.of(stream("[DONE]", "Hel", "lo")))) {
      RecordingSubscriber subscriber = new RecordingSubscriber(model(server));
      subscriber.becomes("Hel", "lo", "complete");
    }
  }

  @Test
  void aStreamThatIsCutEndsInAnErrorAndIsNeverComplete() throws Exception {
    try (ScriptedServer server = server(List.of(stream(Map.of("end", "truncate"), "Hel")))) {
      RecordingSubscriber subscriber = new RecordingSubscriber(model(server));
      LastwordException error = subscriber.error("Hel", "error");
      assertEquals(Codes.STREAM_INCOMPLETE, error.code());
      assertEquals("Hel", error.partial().text());
      assertInstanceOf(LastwordOpenAIException.class, subscriber.error);
    }
  }

  @Test
  void aStreamThatEndsWithoutDoneOrFinishReasonIsCutToo() throws Exception {
    try (ScriptedServer server = server(List.of(stream(Map.of("end", "complete"), "Hel")))) {
      assertEquals(
          Codes.STREAM_INCOMPLETE,
          new RecordingSubscriber(model(server)).error("Hel", "error").code());
    }
  }

  @Test
  void anErrorWithinAStreamHasItsCode() throws Exception {
    Map<String, Object> error =
        Map.of(
            "data",
            Map.of("error", Map.of("message", "EngineCore died", "type", "x", "code", 500)));
    try (ScriptedServer server = server(List.of(stream(error, "Hel")))) {
      LastwordException told = new RecordingSubscriber(model(server)).error("Hel", "error");
      assertEquals(Codes.INTERNAL_SERVER_ERROR, told.code());
      assertEquals("EngineCore died", told.info().message());
    }
  }

  @Test
  void aToolCallThatIsCutIsNotHandedOver() throws Exception {
    try (ScriptedServer server =
        server(List.of(toolCall(Map.of("end", "complete"), "{\"path\": \"/tm")))) {
      RecordingSubscriber subscriber = new RecordingSubscriber(model(server));
      subscriber.error("error");
      assertEquals(List.of(), subscriber.calls);
    }
  }

  @Test
  void aWholeToolCallIs() throws Exception {
    try (ScriptedServer server = server(List.of(toolCall("[DONE]", "{\"path\": \"/tmp\"}")))) {
      RecordingSubscriber subscriber = new RecordingSubscriber(model(server));
      subscriber.becomes("complete");
      assertEquals("{\"path\": \"/tmp\"}", subscriber.calls.get(0).arguments());
    }
  }

  @Test
  void contextLengthExceededHasItsNumbersAndIsSentOnce() throws Exception {
    try (ScriptedServer server = server(List.of(failure(400, 400, TOO_LONG)))) {
      OpenAiChatModel model = model(server);
      BadRequestException thrown = assertThrows(BadRequestException.class, () -> model.call(HI));
      // vLLM sent 400 as the code.
      assertEquals(Codes.CONTEXT_LENGTH_EXCEEDED, thrown.code().orElseThrow());
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
    try (ScriptedServer server = server(List.of(failure(400, 400, TOO_LONG)))) {
      LastwordException error = new RecordingSubscriber(model(server)).error("error");
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
        server(List.of(gone, answer("Hello"), gone, stream("[DONE]", "Hi")))) {
      assertEquals("Hello", model(server).call(HI).getResult().getOutput().getText());
      new RecordingSubscriber(model(server)).becomes("Hi", "complete");
      assertEquals(4, server.requests().size());
    }
  }

  @Test
  void aStreamThatIsLeftAtAChunkIsClosedAtOnce() throws Exception {
    try (ScriptedServer server = server(List.of(stream(silence(), "Hel")))) {
      assertEquals("Hel", model(server).stream(HI).blockFirst().getResult().getOutput().getText());
      assertTrue(ScriptedServer.becomes(() -> server.requests().get(0).disconnectedAt != 0, 2000));
    }
  }

  @Test
  void oneThatIsSilentIsLeftByAnotherThread() throws Exception {
    try (ScriptedServer server = server(List.of(stream(silence(), "Hel")))) {
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

  /** What a subscriber was told, in order; texts that are empty are left out. */
  private static final class RecordingSubscriber {
    private final List<String> told = new CopyOnWriteArrayList<>();
    private final List<AssistantMessage.ToolCall> calls = new CopyOnWriteArrayList<>();
    private volatile Throwable error;

    RecordingSubscriber(OpenAiChatModel model) {
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
