package io.lastword;

import static io.lastword.Answers.HI;
import static io.lastword.Answers.answer;
import static io.lastword.Answers.client;
import static io.lastword.Answers.server;
import static io.lastword.Answers.toolCall;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertSame;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.lastword.core.Json;
import io.lastword.errors.InvalidToolArgumentsException;
import io.lastword.scripted.ScriptedServer;
import io.lastword.vectors.Vectors;
import java.nio.charset.StandardCharsets;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/** The arguments of a tool call, as the model wrote them. */
@Timeout(30)
class ToolCallTest {

  @Test
  void toolArgumentsAreParsedOrRefusedButNeverRepaired() {
    assertEquals(
        Map.of("city", "Rome"),
        new ToolCall("1", "weather", "{\"city\": \"Rome\"}", 0, 0).arguments());
    assertEquals(Map.of(), new ToolCall("1", "weather", " ", 0, 0).arguments());
    for (String text : List.of("{\"city\": \"Ro", "[1]", "{\"t\": NaN}")) {
      ToolCall call = new ToolCall("1", "weather", text, 0, 0);
      InvalidToolArgumentsException error =
          assertThrows(InvalidToolArgumentsException.class, call::arguments);
      assertEquals(OutcomeName.COMPLETED, error.outcome());
      assertEquals(text, error.raw());
      assertSame(call, error.toolCall());
      assertFalse(error.getMessage().contains("Ro"), error.getMessage());
    }
  }

  /** From the answer that calls a tool to the request that brings its result. */
  @Test
  void aCallAndItsResultGoIntoTheNextRequest() throws Exception {
    List<Map<String, Object>> exchanges =
        List.of(toolCall("[DONE]", "{\"path\": \"/\"}"), answer("two files"));
    try (ScriptedServer server = server(exchanges);
        LastwordClient client = client(server)) {
      AnswerStream stream = client.chat().completions().createStreaming(HI);
      stream.forEachRemaining(each -> {});
      Completed called = Objects.requireNonNull(stream.outcome()).orThrow();
      ChatRequest.Builder next = ChatRequest.builder().model("m").user("hi").assistant(called);
      called.toolCalls().forEach(each -> next.tool(each.id(), "a, b"));
      Completed answer = client.chat().completions().create(next.assistant("x").build());
      assertEquals("two files", answer.text());
      Object body = Json.parse(new String(server.requests().get(1).body, StandardCharsets.UTF_8));
      assertEquals(
          Json.parse(
              """
              [{"role": "user", "content": "hi"},
               {"role": "assistant", "content": null, "tool_calls": [
                 {"id": "call_1", "type": "function",
                  "function": {"name": "list", "arguments": "{\\"path\\": \\"/\\"}"}}]},
               {"role": "tool", "tool_call_id": "call_1", "content": "a, b"},
               {"role": "assistant", "content": "x"}]
              """),
          Vectors.map(body).get("messages"));
      assertEquals(
          Map.of("role", "assistant", "content", "two files"),
          ((List<?>) ChatRequest.builder().assistant(answer).build().body().get("messages"))
              .get(0));
    }
  }

  @Test
  void anAnswerOfNothingIsAnEmptyText() {
    Map<String, Object> nothing = Map.of("role", "assistant", "content", "");
    assertEquals(List.of(nothing), assistant(List.of()).body().get("messages"));
  }

  @Test
  void aCallWithoutAnIdIsNamed() {
    List<ToolCall> nameless = List.of(new ToolCall(null, "list", "{}", 0, 0));
    IllegalArgumentException error =
        assertThrows(IllegalArgumentException.class, () -> assistant(nameless));
    assertTrue(error.getMessage().contains("list"), error.getMessage());
  }

  private static ChatRequest assistant(List<ToolCall> calls) {
    Completed answer =
        new Completed(Map.of(), calls, Map.of(), null, List.of(), null, List.of(), Map.of());
    return ChatRequest.builder().assistant(answer).build();
  }
}
