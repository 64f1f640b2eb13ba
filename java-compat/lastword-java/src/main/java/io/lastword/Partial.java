package io.lastword;

import io.lastword.core.Json;
import java.io.Serializable;
import java.util.Collections;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import org.jspecify.annotations.Nullable;

/**
 * What had been received when a request ended without completing.
 *
 * @param texts what each choice had said, by its index
 * @param toolCalls as they came, cut ones included: parse none of them
 * @param usage the last token counts that the server sent, keys as in OpenAI's {@code usage}
 * @param finishReasons each choice's, as the server wrote it; null while it had none
 * @param chunks how many were received
 */
public record Partial(
    Map<Integer, String> texts,
    List<ToolCall> toolCalls,
    @Nullable Map<String, @Nullable Object> usage,
    Map<Integer, @Nullable String> finishReasons,
    int chunks)
    implements Serializable {

  /** Nothing was received. */
  public static final Partial NOTHING = new Partial(Map.of(), List.of(), null, Map.of(), 0);

  /** Keeps copies that nobody can change. */
  public Partial {
    texts = Collections.unmodifiableMap(new TreeMap<>(texts));
    toolCalls = List.copyOf(toolCalls);
    usage = usage == null ? null : Json.frozen(usage);
    finishReasons = Collections.unmodifiableMap(new TreeMap<>(finishReasons));
  }

  /** What choice 0 had said. */
  public String text() {
    return texts.getOrDefault(0, "");
  }
}
