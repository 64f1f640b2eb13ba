package io.lastword.errors;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertInstanceOf;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.lastword.Codes;
import io.lastword.Partial;
import io.lastword.ToolCall;
import io.lastword.core.Classifier;
import java.math.BigInteger;
import java.nio.charset.StandardCharsets;
import java.time.Instant;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.OptionalLong;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/** What the exceptions say of what they were made of. */
@Timeout(30)
class LastwordExceptionTest {

  @Test
  void aNumberIsAsTheServerGaveItOrAbsent() {
    String said =
        "max_tokens=10000000000 cannot be greater than max_model_len=2048. Please request fewer output tokens.";
    ContextLengthExceededException error =
        assertInstanceOf(
            ContextLengthExceededException.class,
            thrown(
                Classifier.response(
                    400, Map.of(), said.getBytes(StandardCharsets.UTF_8), Instant.EPOCH),
                null));
    assertEquals(new BigInteger("10000000000"), error.details().get("max_tokens"));
    assertEquals(OptionalLong.of(10_000_000_000L), error.maxTokens());
    assertEquals(OptionalLong.of(2048), error.maxModelLen());
    assertEquals(OptionalLong.empty(), error.promptTokens());
  }

  @Test
  void whatNoLongHoldsIsAbsent() {
    Map<String, Object> details = new LinkedHashMap<>();
    details.put("prompt_tokens", BigInteger.TEN.pow(30));
    details.put("max_tokens", Double.NaN);
    details.put("max_model_len", 2048.0);
    ContextLengthExceededException error =
        assertInstanceOf(
            ContextLengthExceededException.class,
            thrown(
                Classifier.error(Codes.CONTEXT_LENGTH_EXCEEDED, "m").details(details).build(),
                null));
    assertEquals(OptionalLong.empty(), error.promptTokens());
    assertEquals(OptionalLong.empty(), error.maxTokens());
    assertEquals(OptionalLong.of(2048), error.maxModelLen());
    assertEquals(BigInteger.TEN.pow(30), error.details().get("prompt_tokens"));
  }

  @Test
  void theMessageOfWhatMaySucceedLaterSaysWhyItWasNotSentAgain() {
    LastwordException later =
        thrown(Classifier.error(Codes.ENGINE_UNAVAILABLE, "m").build(), "the budget is spent");
    assertEquals("the budget is spent", later.notRetried());
    assertTrue(
        later.getMessage().startsWith("m [engine_unavailable, gave up: the budget is spent]. "),
        later.getMessage());
    LastwordException never =
        thrown(Classifier.error(Codes.NOT_FOUND, "m").build(), "it is of no use");
    assertEquals("it is of no use", never.notRetried());
    assertTrue(never.getMessage().startsWith("m [not_found]. "), never.getMessage());
    assertNull(thrown(Classifier.error(Codes.NOT_FOUND, "m").build(), null).notRetried());
  }

  @Test
  void theDetailsAreACopyAtAnyDepth() {
    List<Object> given = new ArrayList<>(List.of(1));
    ErrorInfo info =
        Classifier.error(Codes.NOT_FOUND, "m").details(Map.of("choices", given)).build();
    given.add(2);
    assertEquals(Map.of("choices", List.of(1)), info.details());
    List<?> kept = (List<?>) info.details().get("choices");
    assertThrows(UnsupportedOperationException.class, () -> kept.remove(0));
  }

  @Test
  void aToolCallsRawTextIsCutAndTheCallHasItAll() {
    ToolCall call = new ToolCall("1", "write", "{\"text\": \"" + "x".repeat(5000), 0, 0);
    InvalidToolArgumentsException error =
        assertThrows(InvalidToolArgumentsException.class, call::arguments);
    assertEquals(call.rawArguments().substring(0, 4096), error.raw());
    assertEquals(call, error.toolCall());
  }

  private static LastwordException thrown(ErrorInfo info, String notRetried) {
    return LastwordException.of(info, Partial.NOTHING, List.of(), null, notRetried);
  }
}
