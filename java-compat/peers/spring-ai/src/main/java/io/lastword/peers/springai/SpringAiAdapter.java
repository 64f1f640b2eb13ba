package io.lastword.peers.springai;

import io.lastword.conformance.Adapter;
import io.lastword.conformance.CancelTimer;
import io.lastword.conformance.Case;
import io.lastword.conformance.Main;
import io.lastword.conformance.OpenAiErrors;
import io.lastword.conformance.Transcript;
import java.io.IOException;
import java.time.Duration;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionException;
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
    List<Message> messages = new ArrayList<>();
    given.userTexts().forEach(text -> messages.add(new UserMessage(text)));
    Map<String, Object> more = new LinkedHashMap<>(given.request());
    more.remove("messages");
    OpenAiChatOptions options =
        OpenAiChatOptions.builder()
            .baseUrl(given.baseUrl())
            .apiKey(given.apiKey())
            .model((String) more.remove("model"))
            .n((Integer) more.remove("n"))
            .extraBody(more)
            .maxRetries(given.retries())
            .timeout(LONG)
            .build();
    OpenAiChatModel model = OpenAiChatModel.builder().options(options).build();
    return given.repeated(() -> new One(given).make(model, new Prompt(messages)));
  }

  /** One call, and what its caller has in hand. */
  private static final class One {
    private final Case given;
    private final CompletableFuture<Map<String, Object>> result = new CompletableFuture<>();
    private final Transcript transcript = new Transcript();
    private volatile boolean left;

    One(Case given) {
      this.given = given;
    }

    Map<String, Object> make(OpenAiChatModel model, Prompt prompt) throws Exception {
      Reader reader = new Reader();
      Thread caller = Thread.currentThread();
      Runnable leave =
          () -> {
            left = true;
            if (given.stream()) {
              reader.leave();
            } else {
              caller.interrupt();
            }
          };
      try (CancelTimer timer = new CancelTimer(given, leave)) {
        if (given.stream()) {
          model.stream(prompt).subscribe(reader);
        } else {
          take(model.call(prompt));
          completed();
        }
        return result.get();
      } catch (Exception e) {
        // Kotlin throws InterruptedException where Java would have to say so
        failed(e);
        return result.get();
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
        completed();
      }

      @Override
      protected void hookOnError(Throwable error) {
        failed(error);
      }

      void leave() {
        cancel();
        cancelled();
      }
    }

    private synchronized void take(ChatResponse response) {
      for (Generation each : response.getResults()) {
        AssistantMessage message = each.getOutput();
        long choice = ((Number) message.getMetadata().get("index")).longValue();
        transcript.text(choice, message.getText() == null ? "" : message.getText());
        message.getToolCalls().forEach(it -> transcript.call(it.id(), it.name(), it.arguments()));
        String reason = each.getMetadata().getFinishReason();
        if (reason != null && !reason.isEmpty()) {
          transcript.finish(choice, reason.toLowerCase(Locale.ROOT));
        }
      }
      Usage counts = response.getMetadata().getUsage();
      // none is all zeros
      if (counts != null && counts.getTotalTokens() > 0) {
        transcript.usage(
            counts.getPromptTokens(), counts.getCompletionTokens(), counts.getTotalTokens());
      }
    }

    private synchronized void completed() {
      result.complete(transcript.completed());
    }

    private synchronized void cancelled() {
      result.complete(transcript.cancelled());
    }

    private synchronized void failed(Throwable error) {
      boolean wrapped = error instanceof CompletionException && error.getCause() != null;
      Map<String, Object> report = OpenAiErrors.report(wrapped ? error.getCause() : error);
      result.complete(left ? transcript.cancelled() : transcript.failed(report));
    }
  }
}
