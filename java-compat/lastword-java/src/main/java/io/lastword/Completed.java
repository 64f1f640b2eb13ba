package io.lastword;

import io.lastword.core.Json;
import io.lastword.errors.LastwordException;
import java.util.Collections;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import org.jspecify.annotations.Nullable;

/**
 * A whole answer: every choice that was asked for has finished, and the terminal event arrived.
 *
 * @param texts what each choice says, by its index
 * @param toolCalls the tool calls; one that {@code length} cut short is withheld (TOOL-2)
 * @param finishReasons each choice's
 * @param usage token counts, keys as in OpenAI's {@code usage}; null if the server sent none
 * @param warnings what the caller should still be told, such as that the server stopped an answer
 *     that repeated itself
 * @param requestId the server's word on it, else the one that was sent
 * @param attempts what each try met
 * @param body all that the server sent, as parsed JSON; empty for a stream, whose chunks had it
 */
public record Completed(
    Map<Integer, String> texts,
    List<ToolCall> toolCalls,
    Map<Integer, @Nullable String> finishReasons,
    @Nullable Map<String, @Nullable Object> usage,
    List<String> warnings,
    @Nullable String requestId,
    List<Attempt> attempts,
    Map<String, @Nullable Object> body)
    implements Outcome {

  /** Keeps copies that nobody can change. */
  public Completed {
    texts = Collections.unmodifiableMap(new TreeMap<>(texts));
    toolCalls = List.copyOf(toolCalls);
    finishReasons = Collections.unmodifiableMap(new TreeMap<>(finishReasons));
    warnings = List.copyOf(warnings);
    attempts = List.copyOf(attempts);
    usage = usage == null ? null : Json.frozen(usage);
    body = Json.frozen(body);
  }

  /** What choice 0 says. */
  public String text() {
    return texts.getOrDefault(0, "");
  }

  @Override
  public OutcomeName name() {
    return OutcomeName.COMPLETED;
  }

  @Override
  public @Nullable LastwordException error() {
    return null;
  }

  @Override
  public Completed orThrow() {
    return this;
  }
}
