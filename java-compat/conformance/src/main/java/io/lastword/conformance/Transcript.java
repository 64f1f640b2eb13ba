package io.lastword.conformance;

import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import org.jspecify.annotations.Nullable;

/**
 * What a caller has been handed of an answer, and the report on it once the call has ended. Not for
 * several threads.
 */
public final class Transcript {

  private final Map<String, String> texts = new TreeMap<>();
  private final Map<String, String> finishReasons = new TreeMap<>();
  private final List<Map<String, Object>> calls = new ArrayList<>();
  private @Nullable Map<String, Object> usage;

  /** A choice goes on. */
  public void text(long choice, String text) {
    texts.merge(String.valueOf(choice), text, String::concat);
  }

  public void finish(long choice, String reason) {
    finishReasons.put(String.valueOf(choice), reason);
  }

  public void call(String id, String name, String arguments) {
    Map<String, Object> call = new LinkedHashMap<>();
    call.put("id", id);
    call.put("name", name);
    call.put("arguments", arguments);
    calls.add(call);
  }

  public void usage(int prompt, int completion, int total) {
    usage =
        new TreeMap<>( // the same order in every process, as reports want it
            Map.of(
                "prompt_tokens", prompt, "completion_tokens", completion, "total_tokens", total));
  }

  public Map<String, Object> completed() {
    return ended("completed", null);
  }

  public Map<String, Object> cancelled() {
    return ended("cancelled", "cancelled");
  }

  /** {@code error} is the report on the error alone. */
  public Map<String, Object> failed(Map<String, Object> error) {
    return with(error);
  }

  private Map<String, Object> ended(String outcome, @Nullable String code) {
    Map<String, Object> end = new LinkedHashMap<>();
    end.put("outcome", outcome);
    end.put("code", code);
    return with(end);
  }

  /** A copy, since a call that was left may still be told something. */
  private Map<String, Object> with(Map<String, Object> end) {
    Map<String, Object> report = new LinkedHashMap<>(end);
    report.put("text", texts.getOrDefault("0", ""));
    if (!texts.isEmpty()) {
      report.put("texts", new TreeMap<>(texts));
    }
    if (!finishReasons.isEmpty()) {
      report.put("finish_reasons", new TreeMap<>(finishReasons));
    }
    if (usage != null) {
      report.put("usage", usage);
    }
    report.put("tool_calls", List.copyOf(calls));
    return report;
  }
}
