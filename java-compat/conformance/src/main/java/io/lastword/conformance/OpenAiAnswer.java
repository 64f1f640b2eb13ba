package io.lastword.conformance;

import com.openai.models.chat.completions.ChatCompletion;
import com.openai.models.chat.completions.ChatCompletionChunk;
import com.openai.models.chat.completions.ChatCompletionMessageToolCall;
import com.openai.models.completions.CompletionChoice;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeMap;

/** An answer by openai-java, put together from its chunks as a careful caller does it. */
final class OpenAiAnswer {

  /** With one of these the caller runs what was called. */
  private static final Set<String> RUN = Set.of("tool_calls", "function_call", "stop");

  private final Transcript transcript = new Transcript();
  private final Map<String, ToolCall> calls = new TreeMap<>();
  private boolean run;

  private static final class ToolCall {
    String id = "";
    String name = "";
    String arguments = "";
  }

  void take(ChatCompletionChunk.Choice choice) {
    transcript.text(choice.index(), choice.delta().content().orElse(""));
    for (ChatCompletionChunk.Choice.Delta.ToolCall part :
        choice.delta().toolCalls().orElse(List.of())) {
      ToolCall call = call(choice.index(), part.index());
      part.id().ifPresent(id -> call.id = id);
      part.function().flatMap(each -> each.name()).ifPresent(name -> call.name += name);
      part.function().flatMap(each -> each.arguments()).ifPresent(text -> call.arguments += text);
    }
    choice.finishReason().ifPresent(reason -> finish(choice.index(), reason.asString()));
  }

  void take(ChatCompletion.Choice choice) {
    transcript.text(choice.index(), choice.message().content().orElse(""));
    int number = 0;
    for (ChatCompletionMessageToolCall each : choice.message().toolCalls().orElse(List.of())) {
      ToolCall call = call(choice.index(), number++);
      call.id = each.asFunction().id();
      call.name = each.asFunction().function().name();
      call.arguments = each.asFunction().function().arguments();
    }
    finish(choice.index(), choice.finishReason().asString());
  }

  void take(CompletionChoice choice) {
    transcript.text(choice.index(), choice.text());
    choice._finishReason().asKnown().ifPresent(it -> finish(choice.index(), it.asString()));
  }

  /** What the caller has in hand at the end of the call. */
  Transcript transcript() {
    if (run) {
      calls.values().forEach(call -> transcript.call(call.id, call.name, call.arguments));
    }
    return transcript;
  }

  private void finish(long choice, String reason) {
    transcript.finish(choice, reason);
    run |= RUN.contains(reason);
  }

  private ToolCall call(long choice, long index) {
    return calls.computeIfAbsent(choice + "/" + index, key -> new ToolCall());
  }
}
