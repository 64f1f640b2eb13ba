package io.lastword.conformance;

import com.openai.client.OpenAIClient;
import com.openai.core.ObjectMappers;
import com.openai.core.http.StreamResponse;
import com.openai.errors.OpenAIException;
import com.openai.errors.OpenAIIoException;
import com.openai.models.chat.completions.ChatCompletionChunk;
import com.openai.models.chat.completions.ChatCompletionCreateParams;
import com.openai.models.completions.Completion;
import com.openai.models.completions.CompletionCreateParams;
import java.util.Iterator;
import java.util.Map;
import java.util.function.Consumer;
import java.util.function.Function;

/** One call by openai-java, which its caller may leave. */
final class OpenAiCall {

  private final OpenAIClient client;
  private final Case given;
  private final OpenAiAnswer answer = new OpenAiAnswer();
  private volatile boolean left;

  OpenAiCall(OpenAIClient client, Case given) {
    this.client = client;
    this.given = given;
  }

  /** {@code report} gives the report on what is thrown. */
  Map<String, Object> make(Function<RuntimeException, Map<String, Object>> report) {
    Thread caller = Thread.currentThread();
    Runnable leave =
        () -> {
          left = true;
          // the stream's close waits for the thread that reads
          caller.interrupt();
        };
    try (CancelTimer timer = new CancelTimer(given, leave)) {
      switch (given.endpoint()) {
        case "models" -> client.models().list();
        case "completions" -> completions();
        default -> chat();
      }
      return answer.transcript().completed();
    } catch (Exception e) {
      // Kotlin throws InterruptedException where Java would have to say so
      RuntimeException thrown =
          e instanceof RuntimeException known ? known : new OpenAIIoException("interrupted", e);
      return left
          ? answer.transcript().cancelled()
          : answer.transcript().failed(report.apply(thrown));
    }
  }

  private void completions() {
    CompletionCreateParams params =
        CompletionCreateParams.builder().body(body(CompletionCreateParams.Body.class)).build();
    if (!given.stream()) {
      client.completions().create(params).choices().forEach(answer::take);
      return;
    }
    try (StreamResponse<Completion> stream = client.completions().createStreaming(params)) {
      read(stream, chunk -> chunk.choices().forEach(answer::take));
    }
  }

  private void chat() {
    ChatCompletionCreateParams params =
        ChatCompletionCreateParams.builder()
            .body(body(ChatCompletionCreateParams.Body.class))
            .build();
    if (!given.stream()) {
      client.chat().completions().create(params).choices().forEach(answer::take);
      return;
    }
    try (StreamResponse<ChatCompletionChunk> stream =
        client.chat().completions().createStreaming(params)) {
      read(stream, chunk -> chunk.choices().forEach(answer::take));
    }
  }

  private <T> T body(Class<T> type) {
    return ObjectMappers.jsonMapper().convertValue(given.request(), type);
  }

  private <T> void read(StreamResponse<T> stream, Consumer<T> take) {
    int wanted = given.leaveAfterEvents();
    Iterator<T> chunks = stream.stream().iterator();
    while (chunks.hasNext()) {
      take.accept(chunks.next());
      if (--wanted == 0) {
        left = true;
        stream.close();
        throw new OpenAIException("left");
      }
    }
    if (left) {
      throw new OpenAIException("closed");
    }
  }
}
