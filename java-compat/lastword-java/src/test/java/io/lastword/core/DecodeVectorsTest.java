package io.lastword.core;

import static org.junit.jupiter.api.Assertions.assertEquals;

import io.lastword.Codes;
import io.lastword.Partial;
import io.lastword.Profile;
import io.lastword.ToolCall;
import io.lastword.core.StreamTracker.WireEnd;
import io.lastword.errors.ErrorInfo;
import io.lastword.scripted.Step;
import io.lastword.vectors.Expected;
import io.lastword.vectors.Vectors;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.TreeMap;
import java.util.stream.Stream;
import org.junit.jupiter.api.DynamicTest;
import org.junit.jupiter.api.TestFactory;

/**
 * Every decode vector on the pure core: bytes in, events and a verdict out, however the bytes are
 * cut.
 */
class DecodeVectorsTest {

  private static final List<String> CUTS = List.of("event", "whole", "1", "7");

  @TestFactory
  Stream<DynamicTest> vectors() {
    return Vectors.of("decode", 150).stream()
        .flatMap(
            vector ->
                Vectors.texts(vector, "segmentations", CUTS).stream()
                    .map(
                        cut ->
                            DynamicTest.dynamicTest(
                                vector.get("id") + "@" + cut,
                                () -> play(vector, pieces(vector, cut)))));
  }

  /** Play a vector whose bytes come in these pieces. */
  static void play(Map<String, Object> vector, List<byte[]> pieces) {
    int limit = (int) Vectors.number(vector, "max_event_bytes", SseDecoder.MAX_EVENT_BYTES);
    SseDecoder decoder = new SseDecoder(limit);
    StreamTracker tracker =
        new StreamTracker((int) Vectors.number(vector, "expected_choices", 1), profile(vector));
    List<ServerSentEvent> events = new ArrayList<>();
    for (byte[] piece : pieces) {
      for (ServerSentEvent event : decoder.feed(piece)) {
        events.add(event);
        tracker.accept(event);
      }
      if (decoder.tooLarge()) {
        tracker.reject(
            Classifier.error(
                    Codes.MALFORMED_RESPONSE, "an event is larger than " + limit + " bytes")
                .build());
        break;
      }
    }
    WireEnd end =
        switch ((String) vector.get("end")) {
          case "complete" -> WireEnd.COMPLETE;
          case "truncate" -> WireEnd.TRUNCATED;
          default -> WireEnd.RESET;
        };
    ErrorInfo info = tracker.end(end, decoder.pending());
    Map<String, Object> expect = Vectors.map(vector, "expect");
    List<String> problems = new ArrayList<>(Expected.differences(expect, result(tracker, info)));
    if (expect.containsKey("events")) {
      compare(Vectors.maps(expect, "events"), events, problems);
    }
    assertEquals(List.of(), problems);
  }

  static List<byte[]> pieces(Map<String, Object> vector, String cut) {
    List<Step> steps = Step.all(Vectors.maps(vector, "input"));
    if (!cut.equals("event")) {
      return Step.segments(Step.joined(steps), cut);
    }
    return steps.stream().map(each -> ((Step.Send) each).payload()).toList();
  }

  private static Profile profile(Map<String, Object> vector) {
    return Arrays.stream(Profile.values())
        .filter(each -> each.word().equals(vector.get("profile")))
        .findFirst()
        .orElse(null);
  }

  private static Map<String, Object> result(StreamTracker tracker, ErrorInfo info) {
    Map<String, Object> result = new LinkedHashMap<>();
    result.put("outcome", info == null ? "completed" : info.outcome().word());
    result.put("code", info == null ? null : info.code());
    result.put("category", info == null ? null : info.category().word());
    result.put("retryable", info != null && info.retryable());
    result.put("message", info == null ? "" : info.message());
    result.put("request_id", info == null ? null : info.requestId());
    result.put("status", info == null ? null : info.status());
    result.put("param", info == null ? null : info.param());
    boolean hint = info != null && info.retryAfter() != null;
    result.put("retry_after_ms", hint ? info.retryAfter().toMillis() : null);
    result.put("details", info == null ? Map.of() : info.details());
    Partial partial = tracker.partial();
    result.put("text", partial.text());
    result.put("texts", named(partial.texts()));
    result.put("finish_reasons", named(partial.finishReasons()));
    result.put("usage", partial.usage());
    result.put("warnings", info == null ? tracker.warnings() : List.of());
    List<Object> calls = new ArrayList<>();
    for (ToolCall call : tracker.toolCalls()) {
      Map<String, Object> each = new LinkedHashMap<>();
      each.put("id", call.id());
      each.put("name", call.name());
      each.put("arguments", call.rawArguments());
      calls.add(each);
    }
    result.put("tool_calls", calls);
    return result;
  }

  private static Map<String, Object> named(Map<Integer, ?> values) {
    Map<String, Object> named = new TreeMap<>();
    values.forEach((index, value) -> named.put(index.toString(), value));
    return named;
  }

  private static void compare(
      List<Map<String, Object>> wanted, List<ServerSentEvent> events, List<String> problems) {
    if (wanted.size() != events.size()) {
      problems.add(events.size() + " events, not " + wanted.size() + ": " + events);
      return;
    }
    for (int i = 0; i < wanted.size(); i++) {
      Object data = wanted.get(i).get("data"); // text is compared as it is, JSON by its value
      ServerSentEvent event = events.get(i);
      boolean same =
          data instanceof String
              ? data.equals(event.data())
              : Objects.equals(data, parsed(event.data()));
      if (!same || !wanted.get(i).getOrDefault("event", "").equals(event.name())) {
        problems.add("event " + (i + 1) + " is " + event + ", not " + wanted.get(i));
      }
    }
  }

  private static Object parsed(String text) {
    try {
      return Json.parse(text);
    } catch (Json.NotJsonException e) {
      return e;
    }
  }
}
