package io.lastword.conformance;

import com.openai.client.OpenAIClient;
import com.openai.client.OpenAIClientImpl;
import com.openai.client.okhttp.OkHttpClient;
import com.openai.core.ClientOptions;
import com.openai.core.ObjectMappers;
import com.openai.core.Timeout;
import com.openai.core.http.HttpClient;
import com.openai.core.http.StreamResponse;
import com.openai.errors.OpenAIException;
import com.openai.errors.OpenAIInvalidDataException;
import com.openai.errors.OpenAIIoException;
import com.openai.errors.OpenAIServiceException;
import com.openai.models.chat.completions.ChatCompletion;
import com.openai.models.chat.completions.ChatCompletionChunk;
import com.openai.models.chat.completions.ChatCompletionCreateParams;
import com.openai.models.chat.completions.ChatCompletionMessageToolCall;
import com.openai.models.completions.Completion;
import com.openai.models.completions.CompletionChoice;
import com.openai.models.completions.CompletionCreateParams;
import io.lastword.Timeouts;
import io.lastword.openai.LastwordErrors;
import io.lastword.openai.LastwordHttpClient;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Iterator;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Timer;
import java.util.TimerTask;
import java.util.TreeMap;
import org.jspecify.annotations.Nullable;

/** openai-java's blocking client over OkHttp: as it is, or with lastword's decorator. */
public final class OpenAiAdapter implements Adapter {

  private static final Duration LONG = Duration.ofMinutes(10);

  private final boolean decorated;

  OpenAiAdapter(boolean decorated) {
    this.decorated = decorated;
  }

  @Override
  public About about() {
    String version = String.valueOf(OpenAIClientImpl.class.getPackage().getImplementationVersion());
    List<String> has =
        new ArrayList<>(
            List.of("cancel", "choices", "completions", "connect", "models", "retry", "tools"));
    if (!decorated) {
      String note =
          "Over OkHttp. Codes are e.code(), where it does not throw, else the HTTP status, else the exception's class.";
      return new About("openai-java", version, has, note);
    }
    has.addAll(List.of("first_token", "idle"));
    return new About(
        "openai-java with lastword",
        version,
        has,
        "On LastwordHttpClient; codes as LastwordErrors gives them.");
  }

  @Override
  public Map<String, Object> run(Case given) throws Exception {
    Duration connect = given.timeout("connect", Duration.ofMinutes(1));
    Duration total = given.timeout("total", LONG);
    Timeout limits =
        Timeout.builder()
            .connect(connect == null ? LONG : connect)
            .read(LONG)
            .request(total == null ? LONG : total)
            .build();
    HttpClient http;
    if (!decorated) {
      http = OkHttpClient.builder().timeout(limits).build();
    } else {
      Timeouts silence =
          Timeouts.none()
              .withFirstToken(given.timeout("first_token", LONG))
              .withIdle(given.timeout("idle", LONG));
      http = LastwordHttpClient.create(silence);
    }
    ClientOptions options =
        ClientOptions.builder()
            .httpClient(http)
            .baseUrl(given.baseUrl)
            .apiKey(given.apiKey)
            .maxRetries(given.retries())
            .timeout(limits)
            .build();
    OpenAIClient client = new OpenAIClientImpl(options);
    Map<String, Object> result = Map.of();
    for (int i = 0; i < given.repeat(); i++) {
      result = new One(client, given).make();
    }
    client.close();
    return result;
  }

  /** One call, and what its caller has in hand. */
  private final class One {
    private final OpenAIClient client;
    private final Case given;
    private final Map<String, String> texts = new TreeMap<>();
    private final Map<String, Object> finishReasons = new TreeMap<>();
    private final Map<String, Map<String, Object>> calls = new TreeMap<>();
    private boolean begun;
    private volatile boolean left;

    One(OpenAIClient client, Case given) {
      this.client = client;
      this.given = given;
    }

    Map<String, Object> make() {
      Timer timer = new Timer(true);
      Thread caller = Thread.currentThread();
      if (given.cancelAfterMillis() > 0) {
        timer.schedule(
            new TimerTask() {
              @Override
              public void run() {
                left = true;
                caller.interrupt(); // its close waits for the thread that reads
              }
            },
            given.cancelAfterMillis());
      }
      try {
        call();
        return report("completed", null);
      } catch (RuntimeException e) {
        return left ? report("cancelled", "cancelled") : failed(e);
      } catch (Exception e) { // Kotlin throws InterruptedException where Java would have to say so
        return left
            ? report("cancelled", "cancelled")
            : failed(new OpenAIIoException("interrupted", e));
      } finally {
        timer.cancel();
        Thread.interrupted();
      }
    }

    private void call() throws Exception {
      if (given.endpoint().equals("models")) {
        client.models().list();
      } else if (given.endpoint().equals("completions")) {
        CompletionCreateParams params =
            CompletionCreateParams.builder().body(body(CompletionCreateParams.Body.class)).build();
        if (given.stream()) {
          try (StreamResponse<Completion> stream = client.completions().createStreaming(params)) {
            read(stream, chunk -> chunk.choices().forEach(this::take));
          }
        } else {
          client.completions().create(params).choices().forEach(this::take);
        }
      } else {
        ChatCompletionCreateParams params =
            ChatCompletionCreateParams.builder()
                .body(body(ChatCompletionCreateParams.Body.class))
                .build();
        if (given.stream()) {
          try (StreamResponse<ChatCompletionChunk> stream =
              client.chat().completions().createStreaming(params)) {
            read(stream, chunk -> chunk.choices().forEach(this::take));
          }
        } else {
          ChatCompletion answer = client.chat().completions().create(params);
          answer.choices().forEach(this::take);
        }
      }
    }

    private <T> T body(Class<T> type) {
      return ObjectMappers.jsonMapper().convertValue(given.request(), type);
    }

    private <T> void read(StreamResponse<T> stream, java.util.function.Consumer<T> take) {
      begun = true;
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

    private void take(ChatCompletionChunk.Choice choice) {
      say(choice.index(), choice.delta().content().orElse(""));
      choice
          .delta()
          .toolCalls()
          .ifPresent(
              parts ->
                  parts.forEach(
                      part -> {
                        Map<String, Object> call = call(choice.index(), part.index());
                        part.id().ifPresent(id -> call.put("id", id));
                        part.function()
                            .flatMap(each -> each.name())
                            .ifPresent(name -> call.merge("name", name, One::joined));
                        part.function()
                            .flatMap(each -> each.arguments())
                            .ifPresent(text -> call.merge("arguments", text, One::joined));
                      }));
      choice
          .finishReason()
          .ifPresent(
              reason -> finishReasons.put(String.valueOf(choice.index()), reason.asString()));
    }

    private void take(ChatCompletion.Choice choice) {
      say(choice.index(), choice.message().content().orElse(""));
      int number = 0;
      for (ChatCompletionMessageToolCall each : choice.message().toolCalls().orElse(List.of())) {
        Map<String, Object> call = call(choice.index(), number++);
        call.put("id", each.asFunction().id());
        call.put("name", each.asFunction().function().name());
        call.put("arguments", each.asFunction().function().arguments());
      }
      finishReasons.put(String.valueOf(choice.index()), choice.finishReason().asString());
    }

    private void take(CompletionChoice choice) {
      say(choice.index(), choice.text());
      choice
          ._finishReason()
          .asKnown()
          .ifPresent(
              reason -> finishReasons.put(String.valueOf(choice.index()), reason.asString()));
    }

    private void say(long index, String text) {
      texts.merge(String.valueOf(index), text, String::concat);
    }

    private Map<String, Object> call(long choice, long index) {
      return calls.computeIfAbsent(
          choice + "/" + index,
          key -> new LinkedHashMap<>(Map.of("id", "", "name", "", "arguments", "")));
    }

    private static Object joined(Object one, Object other) {
      return one.toString() + other;
    }

    private Map<String, Object> report(String outcome, @Nullable String code) {
      Map<String, Object> report = new LinkedHashMap<>();
      report.put("outcome", outcome);
      report.put("code", code);
      return heard(report);
    }

    private Map<String, Object> heard(Map<String, Object> report) {
      report.put("text", texts.getOrDefault("0", ""));
      if (!texts.isEmpty()) {
        report.put("texts", texts);
      }
      if (!finishReasons.isEmpty()) {
        report.put("finish_reasons", finishReasons);
      }
      // With these a careful caller runs what was called.
      boolean run =
          finishReasons.values().stream()
              .anyMatch(List.of("tool_calls", "function_call", "stop")::contains);
      report.put("tool_calls", run ? new ArrayList<>(calls.values()) : List.of());
      return report;
    }

    private Map<String, Object> failed(RuntimeException thrown) {
      if (decorated) {
        return LastwordErrors.of(thrown)
            .map(error -> heard(new LinkedHashMap<>(Report.failed(error))))
            .orElseThrow(() -> thrown);
      }
      if (thrown instanceof OpenAIServiceException error) {
        String code;
        try {
          code = error.code().orElse(null);
        } catch (OpenAIInvalidDataException e) { // it is no string, as vLLM's is not
          code = null;
        }
        return heard(
            Said.failed(
                "internal_server_error",
                code,
                error.statusCode(),
                String.valueOf(error.getMessage())));
      }
      String word =
          thrown instanceof OpenAIIoException
              ? (begun ? "stream_incomplete" : "connection_failed")
              : "malformed_response";
      return heard(Said.failed(word, null, null, String.valueOf(thrown.getMessage())));
    }
  }
}
