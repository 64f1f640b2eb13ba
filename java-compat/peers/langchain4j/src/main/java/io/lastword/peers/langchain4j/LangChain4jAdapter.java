package io.lastword.peers.langchain4j;

import com.fasterxml.jackson.core.JsonProcessingException;
import dev.langchain4j.agent.tool.ToolExecutionRequest;
import dev.langchain4j.data.message.AiMessage;
import dev.langchain4j.data.message.ChatMessage;
import dev.langchain4j.data.message.UserMessage;
import dev.langchain4j.exception.ContentFilteredException;
import dev.langchain4j.exception.HttpException;
import dev.langchain4j.exception.InternalServerException;
import dev.langchain4j.exception.LangChain4jException;
import dev.langchain4j.exception.TimeoutException;
import dev.langchain4j.exception.UnresolvedModelServerException;
import dev.langchain4j.model.StreamingResponseHandler;
import dev.langchain4j.model.chat.request.ChatRequest;
import dev.langchain4j.model.chat.response.ChatResponse;
import dev.langchain4j.model.chat.response.CompleteToolCall;
import dev.langchain4j.model.chat.response.PartialResponse;
import dev.langchain4j.model.chat.response.PartialResponseContext;
import dev.langchain4j.model.chat.response.PartialToolCall;
import dev.langchain4j.model.chat.response.PartialToolCallContext;
import dev.langchain4j.model.chat.response.StreamingChatResponseHandler;
import dev.langchain4j.model.chat.response.StreamingHandle;
import dev.langchain4j.model.openai.OpenAiChatModel;
import dev.langchain4j.model.openai.OpenAiLanguageModel;
import dev.langchain4j.model.openai.OpenAiModelCatalog;
import dev.langchain4j.model.openai.OpenAiStreamingChatModel;
import dev.langchain4j.model.openai.OpenAiStreamingLanguageModel;
import dev.langchain4j.model.output.FinishReason;
import dev.langchain4j.model.output.Response;
import dev.langchain4j.model.output.TokenUsage;
import io.lastword.conformance.Adapter;
import io.lastword.conformance.Case;
import io.lastword.conformance.Main;
import io.lastword.conformance.Said;
import java.io.IOException;
import java.io.InputStream;
import java.io.UncheckedIOException;
import java.time.Duration;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.Timer;
import java.util.TimerTask;
import java.util.concurrent.CompletableFuture;
import org.jspecify.annotations.Nullable;

/**
 * LangChain4j's OpenAI models as they come, over the JDK's HTTP client.
 *
 * <p>A handler may be told of an error and then of completion. The first of the two counts, as it
 * does for whoever completes a future with them.
 */
public final class LangChain4jAdapter implements Adapter {

  private static final List<String> CAPABILITIES =
      List.of("cancel", "completions", "connect", "models", "tools");
  private static final String NOTE =
      "The first of onError and onCompleteResponse counts; codes are the HttpException's status, else the exception's class.";
  private static final String POM =
      "/META-INF/maven/dev.langchain4j/langchain4j-open-ai/pom.properties";
  private static final Map<FinishReason, String> FINISH_REASONS =
      Map.of(
          FinishReason.STOP, "stop",
          FinishReason.LENGTH, "length",
          FinishReason.TOOL_EXECUTION, "tool_calls",
          FinishReason.CONTENT_FILTER, "content_filter");

  private final boolean retries;

  private LangChain4jAdapter(boolean retries) {
    this.retries = retries;
  }

  /**
   * With the argument {@code retry} it declares that capability, which the models without streams
   * have.
   */
  public static void main(String[] arguments) throws IOException {
    Main.run(new LangChain4jAdapter(List.of(arguments).contains("retry")));
  }

  @Override
  public About about() {
    List<String> has = new ArrayList<>(CAPABILITIES);
    if (retries) {
      has.add("retry");
    }
    return new About("langchain4j", version(), has, NOTE);
  }

  /** Its manifest has none. */
  private static String version() {
    Properties properties = new Properties();
    try (InputStream maven = OpenAiChatModel.class.getResourceAsStream(POM)) {
      properties.load(maven);
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    }
    return properties.getProperty("version");
  }

  @Override
  public Map<String, Object> run(Case given) throws Exception {
    Call call = prepared(given);
    Map<String, Object> result = Map.of();
    for (int i = 0; i < given.repeat(); i++) {
      result = new One(given).make(call);
    }
    return result;
  }

  /** A call by a model that is built already. */
  private interface Call {
    void begin(One one) throws Exception;
  }

  private static Call prepared(Case given) throws Unable {
    Map<String, Object> more = new HashMap<>(given.request());
    String model = (String) more.remove("model");
    Duration limit =
        given.timeout("connect", null); // the library's one limit, for connecting and for the head
    if (given.endpoint().equals("models")) {
      OpenAiModelCatalog catalog =
          OpenAiModelCatalog.builder()
              .baseUrl(given.baseUrl)
              .apiKey(given.apiKey)
              .connectTimeout(limit)
              .build();
      return one -> {
        catalog.listModels();
        one.completed();
      };
    }
    if (given.endpoint().equals("completions")) {
      if (!(more.get("prompt") instanceof String prompt)) {
        throw new Unable("a prompt is one text");
      }
      if (given.stream()) {
        OpenAiStreamingLanguageModel completions =
            OpenAiStreamingLanguageModel.builder()
                .baseUrl(given.baseUrl)
                .apiKey(given.apiKey)
                .modelName(model)
                .timeout(limit)
                .build();
        return one -> completions.generate(prompt, one.texts());
      }
      OpenAiLanguageModel completions =
          OpenAiLanguageModel.builder()
              .baseUrl(given.baseUrl)
              .apiKey(given.apiKey)
              .modelName(model)
              .timeout(limit)
              .maxRetries(given.retries())
              .build();
      return one -> one.completed(completions.generate(prompt));
    }
    List<ChatMessage> messages = new ArrayList<>();
    for (Object each : Case.list(more.remove("messages"))) {
      if (!(Case.map(each).get("role").equals("user")
          && Case.map(each).get("content") instanceof String text)) {
        throw new Unable("a message that is no user's text");
      }
      messages.add(UserMessage.from(text));
    }
    ChatRequest request = ChatRequest.builder().messages(messages).build();
    if (given.stream()) {
      OpenAiStreamingChatModel chat =
          OpenAiStreamingChatModel.builder()
              .baseUrl(given.baseUrl)
              .apiKey(given.apiKey)
              .modelName(model)
              .customParameters(more)
              .timeout(limit)
              .build();
      return one -> chat.chat(request, one);
    }
    OpenAiChatModel chat =
        OpenAiChatModel.builder()
            .baseUrl(given.baseUrl)
            .apiKey(given.apiKey)
            .modelName(model)
            .customParameters(more)
            .timeout(limit)
            .maxRetries(given.retries())
            .build();
    return one -> one.onCompleteResponse(chat.chat(request));
  }

  /** One call, and what its caller has in hand. */
  private static final class One implements StreamingChatResponseHandler {
    private final Case given;
    private final CompletableFuture<Map<String, Object>> result = new CompletableFuture<>();
    private final StringBuilder text = new StringBuilder();
    private final List<Object> calls = new ArrayList<>();
    private boolean leaving;
    private int events;
    private @Nullable StreamingHandle handle;

    One(Case given) {
      this.given = given;
    }

    Map<String, Object> make(Call call) throws Exception {
      Timer timer = new Timer(true);
      Thread caller = Thread.currentThread();
      if (given.cancelAfterMillis() > 0) {
        timer.schedule(
            new TimerTask() {
              @Override
              public void run() {
                leave(caller);
              }
            },
            given.cancelAfterMillis());
      }
      try {
        call.begin(this);
        return result.get();
      } catch (RuntimeException e) {
        onError(e);
        return result.get();
      } finally {
        timer.cancel();
        Thread.interrupted();
      }
    }

    /**
     * A stream can be left by the handle that comes with its first text, so before that a caller
     * can do nothing.
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
      end("cancelled", "cancelled", Map.of());
    }

    @Override
    public synchronized void onPartialResponse(
        PartialResponse part, PartialResponseContext context) {
      text.append(part.text());
      heard(context.streamingHandle());
    }

    @Override
    public synchronized void onPartialToolCall(
        PartialToolCall part, PartialToolCallContext context) {
      heard(context.streamingHandle());
    }

    private void heard(StreamingHandle given) {
      handle = given;
      if (++events == this.given.leaveAfterEvents() || leaving) {
        left(given);
      }
    }

    @Override
    public synchronized void onCompleteToolCall(CompleteToolCall call) {
      called(call.toolExecutionRequest());
    }

    private void called(ToolExecutionRequest request) {
      Map<String, Object> call = new LinkedHashMap<>();
      call.put("id", String.valueOf(request.id()));
      call.put("name", request.name());
      call.put("arguments", request.arguments());
      calls.add(call);
    }

    @Override
    public synchronized void onCompleteResponse(ChatResponse response) {
      AiMessage message = response.aiMessage();
      calls.clear();
      message.toolExecutionRequests().forEach(this::called);
      completed(message.text(), response.finishReason(), response.tokenUsage());
    }

    /** The handler of the completions' streams, which have no handle at all. */
    StreamingResponseHandler<String> texts() {
      return new StreamingResponseHandler<>() {
        @Override
        public void onNext(String token) {
          text.append(token);
        }

        @Override
        public void onComplete(Response<String> response) {
          completed(response);
        }

        @Override
        public void onError(Throwable error) {
          One.this.onError(error);
        }
      };
    }

    void completed(Response<String> response) {
      completed(response.content(), response.finishReason(), response.tokenUsage());
    }

    void completed() {
      end("completed", null, Map.of());
    }

    private void completed(
        @Nullable String whole, @Nullable FinishReason reason, @Nullable TokenUsage usage) {
      text.setLength(0);
      text.append(whole == null ? "" : whole);
      Map<String, Object> more = new LinkedHashMap<>();
      if (reason != null) {
        more.put("finish_reasons", Map.of("0", FINISH_REASONS.getOrDefault(reason, reason.name())));
      }
      if (usage != null && usage.inputTokenCount() != null && usage.outputTokenCount() != null) {
        more.put(
            "usage",
            Map.of(
                "prompt_tokens", usage.inputTokenCount(),
                "completion_tokens", usage.outputTokenCount(),
                "total_tokens", usage.totalTokenCount()));
      }
      end("completed", null, more);
    }

    @Override
    public synchronized void onError(Throwable error) {
      if (leaving && !given.stream()) {
        end("cancelled", "cancelled", Map.of());
        return;
      }
      HttpException http = cause(error, HttpException.class);
      String byClass = http != null ? "invalid_request_error" : byClass(error);
      Integer status = http == null ? null : http.statusCode();
      result.complete(
          heard(Said.failed(byClass, null, status, String.valueOf(error.getMessage()))));
    }

    private String byClass(Throwable error) {
      if (error instanceof TimeoutException) {
        return "connect_timeout"; // connecting is the only thing that a case limits
      }
      if (error instanceof ContentFilteredException) {
        return "content_filtered";
      }
      if (error instanceof UnresolvedModelServerException) {
        return "connection_failed";
      }
      boolean event =
          error.getClass() == RuntimeException.class
              && error.getCause() == null; // one that is named error
      if (error instanceof InternalServerException || event) {
        return "internal_server_error";
      }
      if (cause(error, IOException.class) == null
          || cause(error, JsonProcessingException.class) != null) {
        return "malformed_response";
      }
      // Before the head of an answer it is a CompletionException, and after it the IOException
      // itself, in this.
      return error.getClass() == LangChain4jException.class
          ? "stream_incomplete"
          : "connection_failed";
    }

    private static <T> @Nullable T cause(Throwable error, Class<T> type) {
      for (Throwable each = error; each != null; each = each.getCause()) {
        if (type.isInstance(each)) {
          return type.cast(each);
        }
      }
      return null;
    }

    private void end(String outcome, @Nullable String code, Map<String, Object> more) {
      Map<String, Object> report = new LinkedHashMap<>(more);
      report.put("outcome", outcome);
      report.put("code", code);
      result.complete(heard(report));
    }

    private Map<String, Object> heard(Map<String, Object> report) {
      report.put("text", text.toString());
      report.put("tool_calls", new ArrayList<>(calls));
      return report;
    }
  }
}
