package io.lastword.peers.langchain4j;

import dev.langchain4j.agent.tool.ToolExecutionRequest;
import dev.langchain4j.model.StreamingResponseHandler;
import dev.langchain4j.model.chat.response.ChatResponse;
import dev.langchain4j.model.chat.response.CompleteToolCall;
import dev.langchain4j.model.chat.response.PartialResponse;
import dev.langchain4j.model.chat.response.PartialResponseContext;
import dev.langchain4j.model.chat.response.PartialToolCall;
import dev.langchain4j.model.chat.response.PartialToolCallContext;
import dev.langchain4j.model.chat.response.StreamingChatResponseHandler;
import dev.langchain4j.model.chat.response.StreamingHandle;
import dev.langchain4j.model.output.FinishReason;
import dev.langchain4j.model.output.Response;
import dev.langchain4j.model.output.TokenUsage;
import io.lastword.conformance.CancelTimer;
import io.lastword.conformance.Case;
import io.lastword.conformance.Transcript;
import java.util.Map;
import java.util.concurrent.CompletableFuture;
import org.jspecify.annotations.Nullable;

/**
 * The caller of one call: what it is told, and when it leaves.
 *
 * <p>A handler may be told of an error and then of completion. The first of the two counts, as it
 * does for whoever completes a future with them.
 */
final class ModelCaller implements StreamingChatResponseHandler {

  private static final Map<FinishReason, String> FINISH_REASONS =
      Map.of(
          FinishReason.STOP, "stop",
          FinishReason.LENGTH, "length",
          FinishReason.TOOL_EXECUTION, "tool_calls",
          FinishReason.CONTENT_FILTER, "content_filter");

  private final Case given;
  private final CompletableFuture<Map<String, Object>> result = new CompletableFuture<>();
  private final Transcript transcript = new Transcript();
  private boolean leaving;
  private int events;
  private @Nullable StreamingHandle handle;

  ModelCaller(Case given) {
    this.given = given;
  }

  Map<String, Object> make(ModelCall call) throws Exception {
    Thread caller = Thread.currentThread();
    try (CancelTimer timer = new CancelTimer(given, () -> leave(caller))) {
      call.begin(this);
      return result.get();
    } catch (RuntimeException e) {
      onError(e);
      return result.get();
    }
  }

  /**
   * A stream can be left by the handle that comes with its first text, so before that a caller can
   * do nothing.
   */
  private synchronized void leave(Thread caller) {
    leaving = true;
    if (!given.stream()) {
      caller.interrupt();
    } else if (handle != null) {
      left(handle);
    }
  }

  private void left(StreamingHandle handle) {
    handle.cancel();
    result.complete(transcript.cancelled());
  }

  @Override
  public synchronized void onPartialResponse(PartialResponse part, PartialResponseContext context) {
    transcript.text(0, part.text());
    event(context.streamingHandle());
  }

  @Override
  public synchronized void onPartialToolCall(PartialToolCall part, PartialToolCallContext context) {
    event(context.streamingHandle());
  }

  private void event(StreamingHandle by) {
    handle = by;
    if (++events == given.leaveAfterEvents() || leaving) {
      left(by);
    }
  }

  @Override
  public synchronized void onCompleteToolCall(CompleteToolCall call) {
    called(transcript, call.toolExecutionRequest());
  }

  @Override
  public synchronized void onCompleteResponse(ChatResponse response) {
    Transcript whole =
        whole(response.aiMessage().text(), response.finishReason(), response.tokenUsage());
    response.aiMessage().toolExecutionRequests().forEach(request -> called(whole, request));
    result.complete(whole.completed());
  }

  /** The handler of the completions' streams, which have no handle at all. */
  StreamingResponseHandler<String> texts() {
    return new StreamingResponseHandler<>() {
      @Override
      public void onNext(String token) {
        transcript.text(0, token);
      }

      @Override
      public void onComplete(Response<String> response) {
        completed(response);
      }

      @Override
      public void onError(Throwable error) {
        ModelCaller.this.onError(error);
      }
    };
  }

  void completed(Response<String> response) {
    Transcript whole = whole(response.content(), response.finishReason(), response.tokenUsage());
    result.complete(whole.completed());
  }

  /** The list of models has come. */
  void completed() {
    result.complete(transcript.completed());
  }

  /** What a complete response holds is given in the place of what was told until then. */
  private static Transcript whole(
      @Nullable String text, @Nullable FinishReason reason, @Nullable TokenUsage usage) {
    Transcript whole = new Transcript();
    if (text != null) {
      whole.text(0, text);
    }
    if (reason != null) {
      whole.finish(0, FINISH_REASONS.getOrDefault(reason, reason.name()));
    }
    if (usage != null && usage.inputTokenCount() != null && usage.outputTokenCount() != null) {
      whole.usage(usage.inputTokenCount(), usage.outputTokenCount(), usage.totalTokenCount());
    }
    return whole;
  }

  private static void called(Transcript by, ToolExecutionRequest request) {
    by.call(String.valueOf(request.id()), request.name(), request.arguments());
  }

  @Override
  public synchronized void onError(Throwable error) {
    boolean left = leaving && !given.stream();
    result.complete(left ? transcript.cancelled() : transcript.failed(ModelErrors.report(error)));
  }
}
