package io.lastword.scripted;

import io.lastword.core.Json;
import io.lastword.vectors.Vectors;
import java.io.ByteArrayOutputStream;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Base64;
import java.util.List;
import java.util.Map;

/** One step of a vector, read. */
public sealed interface Step {

  /** Bytes of a body; {@code last} where a client may rightly leave after reading them. */
  record Send(byte[] payload, boolean last) implements Step {}

  /** Silence. */
  record Delay(long millis) implements Step {}

  /** The client must leave within so many milliseconds. */
  record AwaitDisconnect(long millis) implements Step {}

  /** How the wire ends: complete, truncate, reset, stall. */
  record End(String how) implements Step {}

  /** A list of steps. */
  static List<Step> all(List<Map<String, Object>> raw) {
    List<Step> steps = new ArrayList<>();
    raw.forEach(each -> read(each, steps));
    return steps;
  }

  private static void read(Map<String, Object> raw, List<Step> steps) {
    if (raw.containsKey("data")) {
      String event = (String) raw.getOrDefault("event", "");
      steps.add(
          new Send(event(raw.get("data"), event), !event.isEmpty() || mayBeLast(raw.get("data"))));
    } else if (raw.containsKey("json")) {
      steps.add(new Send(bytes(json(raw.get("json"))), true));
    } else if (raw.containsKey("text")) {
      steps.add(new Send(bytes((String) raw.get("text")), true));
    } else if (raw.containsKey("base64")) {
      steps.add(new Send(Base64.getDecoder().decode((String) raw.get("base64")), true));
    } else if (raw.containsKey("repeat")) {
      Map<String, Object> inner = Vectors.map(raw, "repeat");
      for (int i = 0; i < (Integer) inner.get("times"); i++) {
        read(inner, steps);
      }
    } else if (raw.containsKey("delay_ms")) {
      steps.add(new Delay((long) Vectors.number(raw, "delay_ms", 0)));
    } else if (raw.containsKey("await")) {
      steps.add(new AwaitDisconnect((long) Vectors.number(raw, "within_ms", 1000)));
    } else if (raw.containsKey("end")) {
      steps.add(new End((String) raw.get("end")));
    } else {
      throw new IllegalArgumentException("a step that cannot be played: " + raw);
    }
  }

  /** One server-sent event: a text as it is, anything else as JSON. */
  static byte[] event(Object data, String event) {
    StringBuilder lines = new StringBuilder(event.isEmpty() ? "" : "event: " + event + "\n");
    for (String line : (data instanceof String text ? text : json(data)).split("\n", -1)) {
      lines.append("data: ").append(line).append('\n');
    }
    return bytes(lines.append('\n').toString());
  }

  /**
   * Bytes cut into writes: {@code event} and {@code whole} leave them whole, a number is a size.
   */
  static List<byte[]> segments(byte[] payload, String segmentation) {
    if (payload.length == 0) {
      return List.of();
    }
    if (segmentation.equals("event") || segmentation.equals("whole")) {
      return List.of(payload);
    }
    int size = Integer.parseInt(segmentation);
    List<byte[]> pieces = new ArrayList<>();
    for (int start = 0; start < payload.length; start += size) {
      pieces.add(Arrays.copyOfRange(payload, start, Math.min(start + size, payload.length)));
    }
    return pieces;
  }

  /** The payloads of a list of steps as one. */
  static byte[] joined(List<Step> steps) {
    ByteArrayOutputStream all = new ByteArrayOutputStream();
    for (Step step : steps) {
      if (step instanceof Send send) {
        all.writeBytes(send.payload());
      }
    }
    return all.toByteArray();
  }

  // An ordinary chunk never ends a stream; [DONE], text, an error or a stranger may.
  private static boolean mayBeLast(Object data) {
    return !(data instanceof Map<?, ?> map)
        || !map.containsKey("choices")
        || map.containsKey("error");
  }

  private static String json(Object value) {
    try {
      return Json.write(value);
    } catch (Json.NotJsonException e) {
      throw new IllegalArgumentException(e);
    }
  }

  private static byte[] bytes(String text) {
    return text.getBytes(StandardCharsets.UTF_8);
  }
}
