package io.lastword.core;

import static io.lastword.core.Json.object;
import static io.lastword.core.Json.says;
import static io.lastword.core.Json.shown;
import static java.util.Objects.requireNonNullElse;

import io.lastword.Codes;
import io.lastword.Partial;
import io.lastword.Profile;
import io.lastword.ToolCall;
import io.lastword.core.Registry.FinishReason;
import io.lastword.errors.ErrorInfo;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.TreeMap;
import java.util.function.Predicate;
import org.jspecify.annotations.Nullable;

/**
 * Whether an answer is whole: events and the way the wire ended become chunks and exactly one
 * verdict.
 *
 * <p>The one machine behind every stream and whole body. It does no I/O and knows no clock. Its
 * rules are OUT, STR and TOOL of SPEC.md: a request is completed only if each choice that was asked
 * for has a finish_reason of the success set and the terminal event arrived; an error event is
 * terminal whatever follows it. Feed it the events in order, then call {@link #end} once. Not for
 * several threads.
 */
public final class StreamTracker {

  /** How a body ended: as its framing says it must, before that, or by a reset connection. */
  public enum WireEnd {
    COMPLETE("the body ended"),
    TRUNCATED("the connection closed in the middle of the body"),
    RESET("the connection was reset in the middle of the body");

    private final String how;

    WireEnd(String how) {
      this.how = how;
    }
  }

  private final @Nullable Profile profile;
  private final Map<Integer, StringBuilder> texts = new TreeMap<>();
  private final FinishReasons finishReasons;
  private final ToolCallAssembly toolCalls = new ToolCallAssembly();
  private @Nullable Map<String, @Nullable Object> usage;
  private int chunks;
  private boolean progressed;
  private boolean terminal;
  private @Nullable ErrorInfo error;

  /**
   * A tracker of an answer of {@code expectedChoices} choices, from a server that {@code profile}
   * says how to read.
   */
  public StreamTracker(int expectedChoices, @Nullable Profile profile) {
    this.finishReasons = new FinishReasons(expectedChoices, profile);
    this.profile = profile;
  }

  /** Take one event; the chunk to hand over, or null if it is none. */
  public @Nullable Map<String, @Nullable Object> accept(ServerSentEvent event) {
    if (terminal) {
      return null;
    }
    StreamEvent kind = StreamEvent.of(event);
    if (kind instanceof StreamEvent.Chunk chunk) {
      return take(chunk.body(), chunk.choices(), "delta") ? chunk.body() : null;
    }
    if (kind instanceof StreamEvent.Failure failure) {
      reject(failure.error());
    } else if (kind instanceof StreamEvent.Counts counts) {
      usage = Json.frozen(counts.usage());
    } else if (kind instanceof StreamEvent.Done) {
      terminal = true;
    }
    return null;
  }

  /** Take the whole body of a non-stream answer, already known to be no error. */
  public void acceptBody(@Nullable Object body) {
    Map<String, @Nullable Object> answer = object(body);
    if (answer == null || !(answer.get("choices") instanceof List<?> choices)) {
      reject(Classifier.malformed("the answer has no list of choices", body));
    } else if (take(answer, choices, "message")) {
      terminal = true;
    }
  }

  /** End the answer with {@code info}, unless it has ended already. */
  public void reject(ErrorInfo info) {
    if (!terminal) {
      terminal = true;
      error = info;
    }
  }

  /** The verdict: null if the answer completed. {@code pending}: the end cut an event in two. */
  public @Nullable ErrorInfo end(WireEnd wire, boolean pending) {
    ErrorInfo bad = finishReasons.bad();
    if (bad != null) {
      return bad;
    }
    if (error != null) {
      return error;
    }
    if (!terminal && !mayEndWithoutDone(wire, pending)) {
      return unterminated(wire, pending);
    }
    ErrorInfo unfinished = finishReasons.unfinished();
    return unfinished != null ? unfinished : finishReasons.unknown();
  }

  /** Whether the terminal event, or an error, has come. */
  public boolean terminal() {
    return terminal;
  }

  /** Whether content has come since this was asked the last time. */
  boolean takeProgress() {
    boolean came = progressed;
    progressed = false;
    return came;
  }

  /** What each choice has said so far, by its index. */
  public Map<Integer, String> texts() {
    Map<Integer, String> said = new TreeMap<>();
    texts.forEach((index, text) -> said.put(index, text.toString()));
    return said;
  }

  /** Each choice's finish_reason as the server wrote it, null while it has none. */
  public Map<Integer, @Nullable String> finishReasons() {
    return finishReasons.all();
  }

  /** The last token counts that the server sent. */
  public @Nullable Map<String, @Nullable Object> usage() {
    return usage;
  }

  /**
   * The tool calls of choices that have finished; one that {@code length} cut short is withheld
   * (TOOL-2).
   */
  public List<ToolCall> toolCalls() {
    Predicate<ToolCall> safe =
        call -> {
          FinishReason known = finishReasons.of(call.choice());
          return known != null
              && known.success()
              && (!known.value().equals("length") || call.whole());
        };
    return toolCalls.all().stream().filter(safe).toList();
  }

  /** What a completed answer should still be told about, such as {@code repetition}. */
  public List<String> warnings() {
    return finishReasons.warnings();
  }

  /** A snapshot of what has been received. */
  public Partial partial() {
    return new Partial(texts(), toolCalls.all(), usage, finishReasons.all(), chunks);
  }

  private boolean take(Map<String, @Nullable Object> chunk, List<?> choices, String part) {
    boolean whole = part.equals("message");
    for (int position = 0; position < choices.size(); position++) {
      Map<String, @Nullable Object> choice = object(choices.get(position));
      if (choice == null) {
        return refuse("a choice is no object", chunk);
      }
      Object given = requireNonNullElse(choice.get("index"), whole ? position : 0);
      if (!(given instanceof Integer index) || index < 0) {
        return refuse("a choice has the index " + shown(given), chunk);
      }
      Map<String, @Nullable Object> delta = object(choice.get(part));
      if (delta != null) {
        takePart(index, delta, whole);
      } else if (choice.get(part) != null) {
        return refuse("a choice's " + part + " is no object", chunk);
      }
      Object text = choice.get("text");
      if (text == null && delta == null && whole) {
        return refuse("a choice has neither a message nor a text", chunk);
      }
      if (says(text)) {
        progressed = true;
        addText(index, text);
      }
      if (says(choice.get("finish_reason"))) {
        finishReasons.finish(index, shown(choice.get("finish_reason")));
      } else {
        finishReasons.see(index);
      }
    }
    Map<String, @Nullable Object> counts = object(chunk.get("usage"));
    if (counts != null) {
      usage = Json.frozen(counts); // they are cumulative: the last one holds
    }
    chunks++;
    return true;
  }

  private void takePart(int index, Map<String, @Nullable Object> part, boolean whole) {
    part.forEach(
        (name, value) -> {
          if (!says(value) || name.equals("role")) {
            return;
          }
          progressed = true;
          switch (name) {
            case "content" -> addText(index, value);
            case "tool_calls" -> toolCalls.add(index, value, whole);
            case "function_call" ->
                toolCalls.add(index, List.of(Map.of("index", 0, "function", value)), false);
            default -> { // progress, and the caller's to read
            }
          }
        });
  }

  private void addText(int index, @Nullable Object value) {
    String text = Content.text(value);
    if (!text.isEmpty()) {
      texts.computeIfAbsent(index, each -> new StringBuilder()).append(text);
    }
  }

  private boolean refuse(String what, Object value) {
    reject(Classifier.malformed(what, value));
    return false;
  }

  private boolean mayEndWithoutDone(WireEnd wire, boolean pending) {
    // half an event may have been an error's
    return wire == WireEnd.COMPLETE && !pending && profile != null && profile.acceptsMissingDone();
  }

  private ErrorInfo unterminated(WireEnd wire, boolean pending) {
    StringBuilder message =
        new StringBuilder(wire.how)
            .append(
                switch (chunks) {
                  case 0 -> " before an answer could be read from it";
                  case 1 -> " before the stream's terminal event, after 1 chunk";
                  default -> " before the stream's terminal event, after " + chunks + " chunks";
                });
    if (pending) {
      message.append(", with half an event left over");
    }
    if (wire == WireEnd.COMPLETE && finishReasons.unfinished() == null) {
      message.append(FinishReasons.hint(Profile::acceptsMissingDone));
    }
    Map<String, Object> details =
        Map.of("chunks", chunks, "wire", wire.name().toLowerCase(Locale.ROOT));
    return Classifier.error(Codes.STREAM_INCOMPLETE, message.toString()).details(details).build();
  }
}
