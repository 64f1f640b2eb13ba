package io.lastword.conformance;

import static org.junit.jupiter.api.Assertions.assertEquals;

import io.lastword.scripted.Received;
import io.lastword.scripted.ScriptedServer;
import io.lastword.scripted.ScriptedServer.Listening;
import io.lastword.vectors.Expected;
import io.lastword.vectors.Vectors;
import java.time.Duration;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import java.util.stream.Stream;
import org.junit.jupiter.api.DynamicTest;
import org.junit.jupiter.api.TestFactory;
import org.junit.jupiter.api.parallel.Execution;
import org.junit.jupiter.api.parallel.ExecutionMode;

/**
 * Every client vector of the contract on real sockets: what the caller is told, and what the server
 * counted.
 */
@Execution(ExecutionMode.CONCURRENT)
class ClientVectorsTest {

  private static final Map<String, Object> DEFAULTS = new LinkedHashMap<>();

  static {
    DEFAULTS.put("endpoint", "chat");
    DEFAULTS.put("retries", 0);
    DEFAULTS.put("timeouts", Map.of());
    DEFAULTS.put("cancel", null);
    DEFAULTS.put("repeat", 1);
    DEFAULTS.put("profile", null);
  }

  private final Adapter adapter = new LastwordAdapter();

  @TestFactory
  Stream<DynamicTest> vectors() {
    List<String> capabilities = adapter.about().capabilities();
    return Vectors.of("client", 560).stream()
        .flatMap(
            vector -> {
              List<String> needs = Vectors.texts(vector, "needs", List.of());
              assertEquals(
                  List.of(),
                  needs.stream().filter(each -> !capabilities.contains(each)).toList(),
                  "no vector is skipped");
              return Vectors.texts(vector, "segmentations", List.of("event")).stream()
                  .map(
                      cut ->
                          DynamicTest.dynamicTest(
                              vector.get("id") + (cut.equals("event") ? "" : "@" + cut),
                              () -> play(vector, cut)));
            });
  }

  private void play(Map<String, Object> vector, String segmentation) throws Exception {
    Listening listening =
        switch ((String) vector.getOrDefault("listening", "yes")) {
          case "no" -> Listening.NO;
          case "full" -> Listening.FULL;
          default -> Listening.YES;
        };
    Map<String, Object> expect = Vectors.map(vector, "expect");
    List<String> problems = new ArrayList<>();
    ScriptedServer server =
        new ScriptedServer(Vectors.maps(vector, "server"), segmentation, listening);
    try (server) {
      Map<String, Object> given =
          Map.of(
              "base_url", server.baseUrl(), "api_key", "key-of-the-vectors", "call", call(vector));
      long began = System.nanoTime();
      Map<String, Object> result = answer(new Case(given));
      long millis = Duration.ofNanos(System.nanoTime() - began).toMillis();
      problems.addAll(Expected.differences(expect, result));
      if (expect.containsKey("within_ms") && millis > Vectors.number(expect, "within_ms", 0)) {
        problems.add("it took " + millis + " ms, more than " + expect.get("within_ms"));
      }
    }
    problems.addAll(server.problems());
    counted(expect, server.requests(), problems);
    assertEquals(List.of(), problems);
  }

  private Map<String, Object> answer(Case given) throws Exception {
    CompletableFuture<Map<String, Object>> answer = new CompletableFuture<>();
    Thread thread =
        new Thread(
            () -> {
              try {
                answer.complete(adapter.run(given));
              } catch (Throwable e) {
                answer.completeExceptionally(e);
              }
            });
    thread.setDaemon(true);
    thread.start();
    try {
      return answer.get(60, TimeUnit.SECONDS);
    } catch (TimeoutException e) {
      throw new AssertionError("it hangs");
    } catch (ExecutionException e) {
      throw e.getCause() instanceof Exception cause ? cause : e;
    }
  }

  private static Map<String, Object> call(Map<String, Object> vector) {
    Map<String, Object> call = new LinkedHashMap<>(DEFAULTS);
    call.putAll(Vectors.map(vector, "call"));
    Map<String, Object> request = new LinkedHashMap<>();
    if (!call.get("endpoint").equals("models")) {
      request.put("model", "m");
      if (call.get("endpoint").equals("completions")) {
        request.put("prompt", "hi");
      } else {
        request.put("messages", List.of(Map.of("role", "user", "content", "hi")));
      }
      request.putAll(Vectors.map(call, "body"));
    }
    call.remove("body");
    call.put("request", request);
    return call;
  }

  private static void counted(
      Map<String, Object> expect, List<Received> requests, List<String> problems) {
    if (expect.containsKey("requests")
        && requests.size() != Vectors.number(expect, "requests", 0)) {
      problems.add(
          "the server counted " + requests.size() + " requests, not " + expect.get("requests"));
    }
    long connections = requests.stream().map(each -> each.connection).distinct().count();
    if (expect.containsKey("connections")
        && connections != Vectors.number(expect, "connections", 0)) {
      problems.add(
          "the server counted " + connections + " connections, not " + expect.get("connections"));
    }
    List<Map<String, Object>> gaps = Vectors.maps(expect, "gaps_ms");
    for (int i = 0; i < gaps.size() && i + 1 < requests.size(); i++) {
      double gap = (requests.get(i + 1).at - requests.get(i).endedAt) / 1e6;
      if (gap < Vectors.number(gaps.get(i), "min", 0)
          || gap > Vectors.number(gaps.get(i), "max", gap)) {
        problems.add(
            "retry "
                + (i + 1)
                + " came "
                + gap
                + " ms after the answer, not within "
                + gaps.get(i));
      }
    }
  }
}
