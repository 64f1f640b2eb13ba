package io.lastword.peers.springai;

import com.openai.errors.OpenAIInvalidDataException;
import com.openai.errors.OpenAIIoException;
import com.openai.errors.OpenAIServiceException;
import io.lastword.conformance.Adapter;
import io.lastword.conformance.Case;
import io.lastword.conformance.Main;
import io.lastword.conformance.Said;
import java.io.IOException;
import java.time.Duration;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Timer;
import java.util.TimerTask;
import java.util.TreeMap;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionException;
import java.util.concurrent.ExecutionException;
import org.jspecify.annotations.Nullable;
import org.springframework.ai.chat.messages.AssistantMessage;
import org.springframework.ai.chat.messages.Message;
import org.springframework.ai.chat.messages.UserMessage;
import org.springframework.ai.chat.metadata.Usage;
import org.springframework.ai.chat.model.ChatResponse;
import org.springframework.ai.chat.model.Generation;
import org.springframework.ai.chat.prompt.Prompt;
import org.springframework.ai.openai.OpenAiChatModel;
import org.springframework.ai.openai.OpenAiChatOptions;
import reactor.core.publisher.BaseSubscriber;

/**
 * Spring AI's OpenAI chat model as it comes, with the clients that it makes itself: its {@code
 * call} and its {@code stream}.
 */
public final class SpringAiAdapter implements Adapter {

  private static final List<String> CAPABILITIES = List.of("cancel", "choices", "retry", "tools");
  private static final String NOTE =
      "Errors are openai-java's: codes are e.code(), where it does not throw, else the HTTP status, else the exception's class.";
  private static final Duration LONG = Duration.ofMinutes(10);

  private SpringAiAdapter() {}

  public static void main(String[] arguments) throws IOException {
    Main.run(new SpringAiAdapter());
  }

  @Override
  public About about() {
    String version = String.valueOf(OpenAiChatModel.class.getPackage().getImplementationVersion());
    return new About("spring-ai", version, CAPABILITIES, NOTE);
  }

  @Override
  public Map<String, Object> run(Case given) throws Exception {
    if (!given.endpoint().equals("chat")) {
      throw new Unable("it has no model for " + given.endpoint());
    }
    Map<String, Object> more = new LinkedHashMap<>(given.request());
    List<Message> messages = new ArrayList<>();
    for (Object each : Case.list(more.remove("messages"))) {
      if (!(Case.map(each).get("role").equals("user")
          && Case.map(each).get("content") instanceof String text)) {
        throw new Unable("a message that is no user's text");
      }
      messages.add(new UserMessage(text));
    }
    OpenAiChatOptions options =
        OpenAiChatOptions.builder()
            .baseUrl(given.baseUrl)
            .apiKey(given.apiKey)
            .model((String) more.remove("model"))
            .n((Integer) more.remove("n"))
            .extraBody(more)
            .maxRetries(given.retries())
            .timeout(LONG)
            .build();
    OpenAiChatModel model = OpenAiChatModel.builder().options(options).build();
    Map<String, Object> result = Map.of();
    for (int i = 0; i < given.repeat(); i++) {
      result = new One(given).make(model, new Prompt(messages));
    }
    return result;
  }

  /** One call, and what its caller has in hand. */
  private static final class One {
    private final Case given;
    private final CompletableFuture<Map<String, Object>> result = new CompletableFuture<>();
    private final Map<String, String> texts = new TreeMap<>();
    private final Map<String, Object> finishReasons = new TreeMap<>();
    private final List<Object> calls = new ArrayList<>();
    private @Nullable Map<String, Object> usage;
    private volatile boolean left;

    One(Case given) {
      this.given = given;
    }

    Map<String, Object> make(OpenAiChatModel model, Prompt prompt) throws Exception {
      Timer timer = new Timer(true);
      try {
        if (given.stream()) {
          Reader reader = new Reader();
          after(timer, reader::leave);
          model.stream(prompt).subscribe(reader);
        } else {
          after(timer, Thread.currentThread()::interrupt);
          take(model.call(prompt));
          end("completed", null);
        }
        return result.get();
      } catch (ExecutionException e) {
        throw e;
      } catch (Exception e) { // Kotlin throws InterruptedException where Java would have to say so
        failed(e);
        return result.get();
      } finally {
        timer.cancel();
        Thread.interrupted();
      }
    }

    private void after(Timer timer, Runnable leave) {
      if (given.cancelAfterMillis() > 0) {
        timer.schedule(
            new TimerTask() {
              @Override
              public void run() {
                left = true;
                leave.run();
              }
            },
            given.cancelAfterMillis());
      }
    }

    /** The caller of a stream; it is told nothing more once it has left. */
    private final class Reader extends BaseSubscriber<ChatResponse> {
      private int events;

      @Override
      protected void hookOnNext(ChatResponse response) {
        take(response);
        if (++events == given.leaveAfterEvents()) {
          leave();
        }
      }

      @Override
      protected void hookOnComplete() {
        end("completed", null);
      }

      @Override
      protected void hookOnError(Throwable error) {
        failed(error);
      }

      void leave() {
        cancel();
        end("cancelled", "cancelled");
      }
    }

    private synchronized void take(ChatResponse response) {
      for (Generation each : response.getResults()) {
        AssistantMessage message = each.getOutput();
        String index = String.valueOf(message.getMetadata().get("index"));
        texts.merge(index, message.getText() == null ? "" : message.getText(), String::concat);
        for (AssistantMessage.ToolCall call : message.getToolCalls()) {
          calls.add(Map.of("id", call.id(), "name", call.name(), "arguments", call.arguments()));
        }
        String reason = each.getMetadata().getFinishReason();
        if (reason != null && !reason.isEmpty()) {
          finishReasons.put(index, reason.toLowerCase(Locale.ROOT));
        }
      }
      Usage counts = response.getMetadata().getUsage();
      if (counts != null && counts.getTotalTokens() > 0) { // none is all zeros
        usage =
            Map.of(
                "prompt_tokens", counts.getPromptTokens(),
                "completion_tokens", counts.getCompletionTokens(),
                "total_tokens", counts.getTotalTokens());
      }
    }

    private void failed(Throwable given) {
      Throwable thrown =
          given instanceof CompletionException && given.getCause() != null
              ? given.getCause()
              : given;
      if (left) {
        end("cancelled", "cancelled");
      } else if (thrown instanceof OpenAIServiceException error) {
        String code;
        try {
          code = error.code().orElse(null);
        } catch (OpenAIInvalidDataException e) { // it is no string, as vLLM's is not
          code = null;
        }
        result.complete(
            heard(
                Said.failed(
                    "internal_server_error",
                    code,
                    error.statusCode(),
                    String.valueOf(error.getMessage()))));
      } else {
        String message = String.valueOf(thrown.getMessage());
        String broken =
            message.equals("Stream failed")
                ? "stream_incomplete"
                : "connection_failed"; // else "Request failed"
        String word = thrown instanceof OpenAIIoException ? broken : "malformed_response";
        result.complete(heard(Said.failed(word, null, null, message)));
      }
    }

    private void end(String outcome, @Nullable String code) {
      Map<String, Object> report = new LinkedHashMap<>();
      report.put("outcome", outcome);
      report.put("code", code);
      result.complete(heard(report));
    }

    private synchronized Map<String, Object> heard(Map<String, Object> report) {
      report.put("text", texts.getOrDefault("0", ""));
      if (!texts.isEmpty()) {
        report.put("texts", new TreeMap<>(texts));
      }
      if (!finishReasons.isEmpty()) {
        report.put("finish_reasons", new TreeMap<>(finishReasons));
      }
      if (usage != null) {
        report.put("usage", usage);
      }
      report.put("tool_calls", new ArrayList<>(calls));
      return report;
    }
  }
}
