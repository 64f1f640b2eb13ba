package io.lastword.conformance;

import io.lastword.AnswerStream;
import io.lastword.ChatRequest;
import io.lastword.Chunk;
import io.lastword.CompletionRequest;
import io.lastword.Endpoint;
import io.lastword.LastwordClient;
import io.lastword.Partial;
import io.lastword.Profile;
import io.lastword.Request;
import io.lastword.RetryPolicy;
import io.lastword.Timeouts;
import io.lastword.ToolCall;
import io.lastword.errors.LastwordException;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;

/** lastword-java's blocking calls. */
public final class LastwordAdapter implements Adapter {

  private static final List<String> CAPABILITIES =
      List.of(
          "cancel",
          "choices",
          "completions",
          "connect",
          "deadline",
          "first_token",
          "headers",
          "idle",
          "models",
          "profiles",
          "retry",
          "tools");

  @Override
  public About about() {
    String note = "Nothing is mapped: outcomes and codes are the library's own.";
    return new About("lastword-java", LastwordClient.VERSION, CAPABILITIES, note);
  }

  @Override
  public Map<String, Object> run(Case given) throws Exception {
    try (LastwordClient client = client(given)) {
      return given.repeated(
          () -> {
            try (CancelTimer timer = new CancelTimer(given, client::close)) {
              return call(client, given);
            }
          });
    }
  }

  private static LastwordClient client(Case given) {
    Timeouts defaults = Timeouts.defaults();
    LastwordClient.Builder builder =
        LastwordClient.builder()
            .baseUrl(given.baseUrl())
            .apiKey(given.apiKey())
            .retry(RetryPolicy.defaults().withMaxAttempts(given.retries() + 1))
            .timeouts(
                new Timeouts(
                    given.timeout("connect", defaults.connect()),
                    given.timeout("first_token", defaults.firstToken()),
                    given.timeout("idle", defaults.idle()),
                    given.timeout("total", defaults.total())));
    if (given.profile() != null) {
      builder.profile(
          Arrays.stream(Profile.values())
              .filter(each -> each.word().equals(given.profile()))
              .findFirst()
              .orElseThrow());
    }
    return builder.build();
  }

  private static Map<String, Object> call(LastwordClient client, Case given) {
    switch (given.endpoint()) {
      case "models" -> {
        try {
          client.models();
          return new Transcript().completed();
        } catch (LastwordException e) {
          return Report.failed(e);
        }
      }
      case "completions" -> {
        CompletionRequest.Builder request = CompletionRequest.builder();
        given.request().forEach(request::set);
        return generate(client.completions(), request.build(), given);
      }
      default -> {
        ChatRequest.Builder request = ChatRequest.builder();
        given.request().forEach(request::set);
        return generate(client.chat().completions(), request.build(), given);
      }
    }
  }

  private static <R extends Request> Map<String, Object> generate(
      Endpoint<R> endpoint, R request, Case given) {
    if (!given.stream()) {
      return Report.of(endpoint.tryCreate(request));
    }
    try (AnswerStream stream = endpoint.createStreaming(request)) {
      return report(stream, given.leaveAfterEvents());
    } catch (LastwordException e) {
      return Report.failed(e);
    }
  }

  private static Map<String, Object> report(AnswerStream stream, int leaveAfter) {
    Map<Integer, String> texts = new TreeMap<>();
    try {
      read(stream, leaveAfter, texts);
    } catch (LastwordException e) {
      check(stream.outcome().error() == e, "another error");
      check(sameTexts(e.partial(), texts), "the error's partial is not what the chunks said");
      return Report.failed(e, stream.toolCalls());
    }
    check(
        stream.text().equals(texts.getOrDefault(0, "")),
        "the stream's text is not what its chunks said");
    List<ToolCall> calls = stream.toolCalls();
    return stream
        .outcome()
        .fold(
            Report::completed,
            it -> Report.failed(it.error(), calls),
            it -> Report.failed(it.error(), calls),
            it -> Report.failed(it.error(), calls));
  }

  private static void read(AnswerStream stream, int leaveAfter, Map<Integer, String> texts) {
    int left = leaveAfter;
    for (Chunk chunk : stream) {
      for (Object each : Case.list(chunk.body().get("choices"))) {
        int index = (Integer) Case.map(each).getOrDefault("index", 0);
        texts.merge(index, chunk.text(index), String::concat);
      }
      if (--left == 0) {
        stream.close();
        return;
      }
    }
  }

  private static boolean sameTexts(Partial partial, Map<Integer, String> texts) {
    Map<Integer, String> all = new TreeMap<>(texts);
    all.replaceAll((index, text) -> "");
    all.putAll(partial.texts());
    return all.equals(texts);
  }

  private static void check(boolean holds, String otherwise) {
    if (!holds) {
      throw new IllegalStateException(otherwise);
    }
  }
}
