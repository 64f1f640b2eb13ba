package io.lastword.examples;

import static io.lastword.Answers.failure;
import static io.lastword.Answers.server;
import static io.lastword.Answers.stream;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.lastword.scripted.ScriptedServer;
import java.io.ByteArrayOutputStream;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.util.List;
import java.util.Map;
import org.junit.jupiter.api.Test;

/** What the README says that the examples print. */
class ExamplesTest {

  private interface Main {
    void run() throws Exception;
  }

  private static String printed(Main main) throws Exception {
    PrintStream out = System.out;
    ByteArrayOutputStream bytes = new ByteArrayOutputStream();
    try (PrintStream caught = new PrintStream(bytes, true, StandardCharsets.UTF_8)) {
      System.setOut(caught);
      main.run();
    } finally {
      System.setOut(out);
    }
    return bytes.toString(StandardCharsets.UTF_8);
  }

  @Test
  void beforeAndAfter() throws Exception {
    String printed = printed(() -> BeforeAndAfter.main(new String[0]));
    assertTrue(printed.contains("before: OldResult[id=null, object=error, choices=null]"), printed);
    assertTrue(printed.contains("it was tried again, 3 times in all"), printed);
    assertTrue(
        printed.contains(
            "after:  ContextLengthExceededException: This model's maximum context length is 2048"),
        printed);
    assertTrue(printed.contains("[context_length_exceeded, HTTP 400, request "), printed);
    assertTrue(printed.contains("max_model_len=2048"), printed);
    assertTrue(printed.contains("sent 1 time"), printed);
  }

  @Test
  void askCatchesTheErrorAndReadsTheStream() throws Exception {
    String refusal =
        "max_tokens=1000000 cannot be greater than max_model_len=2048. This model's maximum context length is 2048 tokens. However,"
            + " you requested 1000000 output tokens and your prompt contains at least 12 input tokens";
    Map<String, Object> models =
        Map.of(
            "status",
            200,
            "steps",
            List.of(Map.of("json", Map.of("data", List.of(Map.of("id", "m"))))));
    try (ScriptedServer server =
        server(List.of(models, failure(400, 400, refusal), stream("[DONE]", "Once", " upon")))) {
      String printed = printed(() -> Ask.main(new String[] {server.baseUrl()}));
      assertTrue(printed.contains("[context_length_exceeded, HTTP 400"), printed);
      assertTrue(printed.contains("Once upon\nCOMPLETED"), printed);
    }
  }
}
