package io.lastword;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;

import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/** Requests and answers that nobody can change, whatever becomes of what they were made from. */
@Timeout(30)
class ImmutableTest {

  @Test
  void aRequestKeepsWhatItWasGiven() {
    List<Object> names = new ArrayList<>(List.of("city"));
    Map<String, Object> schema = new LinkedHashMap<>(Map.of("required", names));
    Map<String, Object> message = new LinkedHashMap<>(Map.of("role", "user", "content", names));
    ChatRequest.Builder builder =
        ChatRequest.builder().model("m").message(message).set("guided_json", schema);
    ChatRequest request = builder.build();
    builder.user("more");
    names.add("country");
    schema.put("type", "object");
    message.put("role", "system");
    assertEquals(Map.of("required", List.of("city")), request.body().get("guided_json"));
    assertEquals(
        List.of(Map.of("role", "user", "content", List.of("city"))),
        request.body().get("messages"));
    Map<?, ?> kept = (Map<?, ?>) request.body().get("guided_json");
    assertThrows(UnsupportedOperationException.class, kept::clear);
  }

  @Test
  void anAnswerKeepsWhatItWasGiven() {
    Map<String, Object> inner = new LinkedHashMap<>(Map.of("cached_tokens", 1));
    Map<String, Object> usage = new LinkedHashMap<>(Map.of("prompt_tokens_details", inner));
    Map<String, Object> body = new LinkedHashMap<>(Map.of("usage", usage));
    Partial partial = new Partial(Map.of(), List.of(), usage, Map.of(), 1);
    Completed whole =
        new Completed(Map.of(), List.of(), Map.of(), usage, List.of(), "r", List.of(), body);
    Model model = new Model("m", body);
    Map<String, Object> was = Map.of("prompt_tokens_details", Map.of("cached_tokens", 1));
    inner.put("cached_tokens", 2);
    usage.put("total_tokens", 3);
    body.clear();
    assertEquals(was, partial.usage());
    assertEquals(was, whole.usage());
    assertEquals(Map.of("usage", was), whole.body());
    assertEquals(Map.of("usage", was), model.body());
    assertThrows(UnsupportedOperationException.class, () -> partial.usage().put("x", 1));
  }

  @Test
  void aChunkCannotBePutTo() {
    Chunk chunk = new Chunk(new LinkedHashMap<>(Map.of("id", "1")));
    assertThrows(UnsupportedOperationException.class, () -> chunk.body().put("x", 1));
  }

  @Test
  void contentInPartsIsText() {
    List<Object> parts = List.of(Map.of("type", "text", "text", "a"), Map.of("text", "b"), 1);
    Map<String, Object> choice = Map.of("index", 0, "delta", Map.of("content", parts));
    assertEquals("ab", new Chunk(Map.of("choices", List.of(choice))).text());
  }
}
