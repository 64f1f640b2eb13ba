package io.lastword;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertInstanceOf;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.lastword.errors.ContextLengthExceededException;
import io.lastword.errors.NotFoundException;
import io.lastword.errors.RequestTimeoutException;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.time.Duration;
import java.util.Map;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/**
 * Against a real vLLM with the shim, whose base URL is the system property {@code lastword.live}.
 * `tests/live/test_java.py` of the repository starts one and runs this; it is no part of an
 * ordinary build.
 */
@Tag("live")
@Timeout(60)
class LiveTest {

  private static final String BASE_URL = System.getProperty("lastword.live", "");
  private static LastwordClient client;
  private static String model;
  private static int context;

  @BeforeAll
  static void open() {
    client = LastwordClient.builder().baseUrl(BASE_URL).build();
    Model served = client.models().get(0);
    model = served.id();
    context = (Integer) served.body().get("max_model_len");
  }

  @AfterAll
  static void close() {
    client.close();
  }

  private static ChatRequest.Builder chat(int tokens) {
    return ChatRequest.builder().model(model).user("hi").maxTokens(tokens).set("ignore_eos", true);
  }

  @Test
  void aWholeAnswer() {
    Completed done = client.chat().completions().create(chat(8).build());
    assertEquals(Map.of(0, "length"), done.finishReasons());
    assertEquals(8, done.usage().get("completion_tokens"));
  }

  @Test
  void aWholeStream() {
    try (AnswerStream stream = client.chat().completions().createStreaming(chat(8).build())) {
      stream.forEach(chunk -> {});
      assertInstanceOf(Completed.class, stream.outcome());
    }
  }

  @Test
  void whatDoesNotFitIsSaidWithItsNumbers() {
    ContextLengthExceededException error =
        assertThrows(
            ContextLengthExceededException.class,
            () -> client.chat().completions().create(chat(context).build()));
    assertEquals(context, error.details().get("max_model_len"));
    assertEquals(context, error.details().get("max_tokens"));
    assertInstanceOf(Integer.class, error.details().get("prompt_tokens"));
    assertEquals(400, error.status());
    assertEquals(1, error.attempts().size());
  }

  @Test
  void aModelThatIsNotThere() {
    ChatRequest other = ChatRequest.builder().model("nobody").user("hi").build();
    assertEquals(
        Codes.MODEL_NOT_FOUND,
        assertThrows(NotFoundException.class, () -> client.chat().completions().create(other))
            .code());
  }

  @Test
  void leavingAStreamStopsTheEngine() throws Exception {
    try (AnswerStream stream =
        client.chat().completions().createStreaming(chat(context - 256).build())) {
      stream.next();
    }
    for (int i = 0; i < 100 && running() > 0; i++) {
      Thread.sleep(50);
    }
    assertEquals(0, running());
  }

  /**
   * The server knows it too, and whichever of the two is the first says the same of a stream that
   * has begun.
   */
  @Test
  void theDeadlineGoesWithTheRequest() {
    ChatRequest late =
        chat(context - 256).timeouts(Timeouts.defaults().withTotal(Duration.ofSeconds(5))).build();
    RequestTimeoutException error =
        assertThrows(
            RequestTimeoutException.class,
            () -> {
              try (AnswerStream stream = client.chat().completions().createStreaming(late)) {
                stream.forEach(chunk -> {});
              }
            });
    assertEquals(Codes.DEADLINE_EXCEEDED, error.code());
  }

  /**
   * The JDK's default asks each plain request to be upgraded to h2c, and the engine then reads an
   * empty body.
   */
  @Test
  void theStockClientIsToldWhy() throws Exception {
    String body =
        "{\"model\":\""
            + model
            + "\",\"messages\":[{\"role\":\"user\",\"content\":\"hi\"}],\"max_tokens\":4}";
    HttpRequest request =
        HttpRequest.newBuilder(URI.create(BASE_URL + "/chat/completions"))
            .header("content-type", "application/json")
            .POST(HttpRequest.BodyPublishers.ofString(body))
            .build();
    HttpResponse<String> answer =
        HttpClient.newHttpClient().send(request, HttpResponse.BodyHandlers.ofString());
    assertEquals(400, answer.statusCode());
    assertTrue(answer.body().contains("HTTP_1_1"), answer.body());
  }

  private static double running() throws Exception {
    HttpRequest metrics =
        HttpRequest.newBuilder(URI.create(BASE_URL.replaceAll("/v1$", "/metrics"))).build();
    String text =
        HttpClient.newHttpClient().send(metrics, HttpResponse.BodyHandlers.ofString()).body();
    return text.lines()
        .filter(line -> line.startsWith("vllm:num_requests_running"))
        .mapToDouble(line -> Double.parseDouble(line.substring(line.lastIndexOf(' '))))
        .sum();
  }
}
