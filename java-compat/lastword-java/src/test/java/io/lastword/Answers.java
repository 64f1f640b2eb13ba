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

  /** What vLLM says with HTTP 400 of a prompt that does not fit. */
  public static final String TOO_LONG =
      "This model's maximum context length is 2048 tokens. However, you requested 4000 output tokens and your prompt contains"
          + " at least 12 input tokens";

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
    return chunk(text == null ? Map.of() : Map.of("content", text), finish);
  }

  /** A stream of these texts that ends as {@code last} says: {@code [DONE]}, or a step. */
  public static Map<String, Object> stream(Object last, String... texts) {
    List<Object> steps = new ArrayList<>();
    for (String text : texts) {
      steps.add(chunk(text, null));
    }
    return ended(steps, "stop", last);
  }

  /** A stream of one tool call with these arguments, which ends in the same ways. */
  public static Map<String, Object> toolCall(Object last, String arguments) {
    Map<String, Object> call =
        Map.of(
            "index",
            0,
            "id",
            "call_1",
            "type",
            "function",
            "function",
            Map.of("name", "list", "arguments", arguments));
    List<Object> steps = new ArrayList<>();
    steps.add(chunk(Map.of("tool_calls", List.of(call)), null));
    return ended(steps, "tool_calls", last);
  }

  private static Map<String, Object> chunk(Map<String, Object> delta, String finish) {
    Map<String, Object> choice = new LinkedHashMap<>();
    choice.put("index", 0);
    choice.put("delta", delta);
    choice.put("finish_reason", finish);
    return Map.of("data", Map.of("id", "chatcmpl-1", "model", "m", "choices", List.of(choice)));
  }

  private static Map<String, Object> ended(List<Object> steps, String finish, Object last) {
    if (last.equals("[DONE]")) {
      steps.add(chunk(Map.of(), finish));
    }
    steps.add(last.equals("[DONE]") ? Map.of("data", last) : last);
    return Map.of("status", 200, "steps", steps);
  }

  public static Map<String, Object> answer(String text) {
    Map<String, Object> message = Map.of("role", "assistant", "content", text);
    Map<String, Object> choice = Map.of("index", 0, "message", message, "finish_reason", "stop");
    return json(200, Map.of("id", "chatcmpl-1", "model", "m", "choices", List.of(choice)));
  }

  public static Map<String, Object> failure(int status, Object code, String message) {
    Map<String, Object> error = Map.of("message", message, "type", "BadRequestError", "code", code);
    return json(status, Map.of("error", error));
  }

  public static Map<String, Object> json(int status, Map<String, Object> body) {
    return Map.of(
        "status", status, "framing", "content-length", "steps", List.of(Map.of("json", body)));
  }

  /** A step: nothing comes any more. */
  public static Map<String, Object> silence() {
    return Map.of("end", "stall");
  }
}
