package io.lastword;

import io.lastword.scripted.ScriptedServer;
import io.lastword.scripted.ScriptedServer.Listening;
import java.io.IOException;
import java.time.Duration;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;

/** Exchanges that tests write most often, and clients for them. */
public final class Answers {

  public static final ChatRequest HI = ChatRequest.builder().model("m").user("hi").build();

  private Answers() {}

  public static ScriptedServer server(List<Map<String, Object>> exchanges) throws IOException {
    return new ScriptedServer(exchanges, "event", Listening.YES);
  }

  public static LastwordClient client(ScriptedServer server) {
    return builder(server).build();
  }

  public static LastwordClient.Builder builder(ScriptedServer server) {
    RetryPolicy quick =
        RetryPolicy.defaults().withDelays(Duration.ofMillis(1), Duration.ofMillis(2));
    return LastwordClient.builder().baseUrl(server.baseUrl()).apiKey("k").retry(quick);
  }

  public static Map<String, Object> chunk(String text, String finish) {
    Map<String, Object> choice = new LinkedHashMap<>();
    choice.put("index", 0);
    choice.put("delta", text == null ? Map.of() : Map.of("content", text));
    choice.put("finish_reason", finish);
    return Map.of("data", Map.of("id", "chatcmpl-1", "model", "m", "choices", List.of(choice)));
  }

  /** A stream of these texts that ends as {@code last} says: {@code [DONE]}, or a step. */
  public static Map<String, Object> stream(Object last, String... texts) {
    List<Object> steps = new ArrayList<>();
    for (String text : texts) {
      steps.add(chunk(text, null));
    }
    if (last.equals("[DONE]")) {
      steps.add(chunk(null, "stop"));
      steps.add(Map.of("data", "[DONE]"));
    } else {
      steps.add(last);
    }
    return Map.of("status", 200, "steps", steps);
  }

  public static Map<String, Object> answer(String text) {
    Map<String, Object> message = Map.of("role", "assistant", "content", text);
    Map<String, Object> choice = Map.of("index", 0, "message", message, "finish_reason", "stop");
    return Map.of(
        "status",
        200,
        "framing",
        "content-length",
        "steps",
        List.of(Map.of("json", Map.of("choices", List.of(choice)))));
  }

  public static Map<String, Object> failure(int status, Object code, String message) {
    Map<String, Object> error = Map.of("message", message, "type", "BadRequestError", "code", code);
    return Map.of(
        "status",
        status,
        "framing",
        "content-length",
        "steps",
        List.of(Map.of("json", Map.of("error", error))));
  }

  public static Map<String, Object> silence() {
    return Map.of("end", "stall");
  }
}
