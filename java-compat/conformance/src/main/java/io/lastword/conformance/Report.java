package io.lastword.conformance;

import io.lastword.Attempt;
import io.lastword.Completed;
import io.lastword.Outcome;
import io.lastword.Partial;
import io.lastword.ToolCall;
import io.lastword.errors.LastwordException;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import org.jspecify.annotations.Nullable;

/** An outcome in the shape of contract/schemas/outcome.json: every member that it has. */
public final class Report {

  private Report() {}

  /** Of any outcome. */
  public static Map<String, Object> of(Outcome outcome) {
    return outcome.fold(
        Report::completed,
        it -> failed(it.error()),
        it -> failed(it.error()),
        it -> failed(it.error()));
  }

  static Map<String, Object> completed(Completed done) {
    Map<String, Object> report = new LinkedHashMap<>();
    report.put("outcome", done.name().word());
    report.put("code", null);
    report.put("category", null);
    report.put("retryable", false);
    report.put("message", "");
    report.put("request_id", done.requestId());
    report.put("warnings", done.warnings());
    received(
        report,
        done.texts(),
        done.finishReasons(),
        done.toolCalls(),
        done.usage(),
        done.attempts());
    return report;
  }

  /** Of what was thrown. */
  public static Map<String, Object> failed(LastwordException error) {
    return failed(error, List.of());
  }

  /**
   * {@code calls} are those that the caller was given, which are fewer than what had been received
   * of them.
   */
  static Map<String, Object> failed(LastwordException error, List<ToolCall> calls) {
    Map<String, Object> report = new LinkedHashMap<>();
    report.put("outcome", error.outcome().word());
    report.put("code", error.code());
    report.put("category", error.category().word());
    report.put("retryable", error.retryable());
    report.put("message", error.info().message());
    report.put("request_id", error.requestId());
    report.put("status", error.status());
    report.put("param", error.param());
    report.put("origin", error.origin().word());
    report.put("retry_after_ms", error.retryAfter() == null ? null : error.retryAfter().toMillis());
    report.put("details", error.details());
    report.put("warnings", List.of());
    Partial partial = error.partial();
    received(
        report, partial.texts(), partial.finishReasons(), calls, partial.usage(), error.attempts());
    return report;
  }

  private static void received(
      Map<String, Object> report,
      Map<Integer, String> texts,
      Map<Integer, @Nullable String> finishReasons,
      List<ToolCall> calls,
      @Nullable Map<String, @Nullable Object> usage,
      List<Attempt> attempts) {
    report.put("text", texts.getOrDefault(0, ""));
    report.put("texts", named(texts));
    report.put("finish_reasons", named(finishReasons));
    report.put("usage", usage);
    List<Object> given = new ArrayList<>();
    for (ToolCall call : calls) {
      Map<String, Object> each = new LinkedHashMap<>();
      each.put("id", call.id());
      each.put("name", call.name());
      each.put("arguments", call.rawArguments());
      given.add(each);
    }
    report.put("tool_calls", given);
    List<Object> tries = new ArrayList<>();
    for (Attempt attempt : attempts) {
      Map<String, Object> each = new LinkedHashMap<>();
      each.put("number", attempt.number());
      each.put("code", attempt.code());
      each.put("status", attempt.status());
      tries.add(each);
    }
    report.put("attempts", tries);
  }

  private static Map<String, Object> named(Map<Integer, ? extends @Nullable Object> values) {
    Map<String, Object> named = new TreeMap<>();
    values.forEach((index, value) -> named.put(index.toString(), value));
    return named;
  }
}
