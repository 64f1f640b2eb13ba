package io.lastword.core;

import static org.junit.jupiter.api.Assertions.assertEquals;

import io.lastword.RetryPolicy;
import io.lastword.errors.ErrorInfo;
import io.lastword.vectors.Vectors;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.time.Instant;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.stream.Stream;
import org.junit.jupiter.api.DynamicTest;
import org.junit.jupiter.api.TestFactory;

/** Every retry vector on the decision itself, under a virtual clock and without jitter. */
class RetryVectorsTest {

  /** Of one retry, in the budget's own unit. */
  private static final int COST = 5;

  /** For hints that are dates. */
  private static final Instant CLOCK = Instant.ofEpochSecond(1_767_225_600);

  @TestFactory
  Stream<DynamicTest> vectors() {
    return Vectors.of("retry", 38).stream()
        .map(vector -> DynamicTest.dynamicTest((String) vector.get("id"), () -> play(vector)));
  }

  private static void play(Map<String, Object> vector) throws Exception {
    Map<String, Object> given = Vectors.map(vector, "given");
    RetryPolicy policy =
        RetryPolicy.defaults()
            .withMaxAttempts((Integer) given.get("max_attempts"))
            .withDelays(millis(given, "base_ms", 0), millis(given, "max_backoff_ms", 60_000));
    RetryBudget budget =
        new RetryBudget(given.get("budget") instanceof Integer retries ? COST * retries : null);
    List<String> problems = new ArrayList<>();
    Duration now = Duration.ZERO;
    ErrorInfo error = null;
    int number = 0;
    for (Map<String, Object> attempt : Vectors.maps(vector, "attempts")) {
      number++;
      now = now.plus(millis(attempt, "took_ms", 0));
      error = failure(attempt);
      Map<String, Object> decided = new LinkedHashMap<>(Map.of("decision", "success"));
      if (error != null) {
        Duration left =
            given.containsKey("deadline_ms") ? millis(given, "deadline_ms", 0).minus(now) : null;
        boolean delivered = Boolean.TRUE.equals(attempt.get("delivered"));
        RetryDecision decision =
            RetryDecision.after(error, number, delivered, left, policy, budget, () -> 1.0);
        decided.put("decision", "give_up");
        if (decision instanceof RetryDecision.Retry retry) {
          decided.put("decision", "retry");
          decided.put("delay_ms", (int) retry.delay().toMillis());
          now = now.plus(retry.delay());
        }
      }
      if (!decided.equals(attempt.get("expect"))) {
        problems.add("after attempt " + number + ": " + decided + ", not " + attempt.get("expect"));
      }
    }
    problems.addAll(differences(Vectors.map(vector, "expect"), error, now));
    assertEquals(List.of(), problems);
  }

  /** How the call ended otherwise than expected. */
  private static List<String> differences(
      Map<String, Object> expect, ErrorInfo error, Duration elapsed) {
    Map<String, Object> ended = new LinkedHashMap<>();
    ended.put("outcome", error == null ? "completed" : error.outcome().word());
    ended.put("code", error == null ? null : error.code());
    ended.put("elapsed_ms", (int) elapsed.toMillis());
    return ended.keySet().stream()
        .filter(name -> expect.containsKey(name))
        .filter(name -> !Objects.equals(ended.get(name), expect.get(name)))
        .map(name -> name + " is " + ended.get(name) + ", not " + expect.get(name))
        .toList();
  }

  private static ErrorInfo failure(Map<String, Object> attempt) throws Exception {
    if (attempt.containsKey("failure")) {
      return Classifier.error((String) attempt.get("failure"), "scripted").build();
    }
    Map<String, Object> response = Vectors.map(attempt, "response");
    Map<String, String> headers = new LinkedHashMap<>();
    Vectors.map(response, "headers")
        .forEach((name, value) -> headers.put(name, String.valueOf(value)));
    byte[] body = Json.write(response.get("body")).getBytes(StandardCharsets.UTF_8);
    return Classifier.response((Integer) response.get("status"), headers, body, CLOCK);
  }

  private static Duration millis(Map<String, Object> from, String name, double otherwise) {
    return Duration.ofNanos((long) (Vectors.number(from, name, otherwise) * 1e6));
  }
}
