package io.lastword;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertSame;
import static org.junit.jupiter.api.Assertions.assertThrows;

import io.lastword.errors.InvalidToolArgumentsException;
import java.util.List;
import java.util.Map;
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
}
