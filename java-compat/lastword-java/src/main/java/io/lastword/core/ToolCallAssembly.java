package io.lastword.core;

import io.lastword.ToolCall;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import org.jspecify.annotations.Nullable;

/**
 * Tool calls put together from the deltas of a stream, or taken from a whole answer (the TOOL
 * rules); nothing is repaired.
 */
final class ToolCallAssembly {

  private record Key(int choice, int index) implements Comparable<Key> {
    @Override
    public int compareTo(Key other) {
      return Comparator.comparingInt(Key::choice).thenComparingInt(Key::index).compare(this, other);
    }
  }

  private record Name(int choice, String id) {}

  private static final class Held {
    String id = "";
    String name = "";
    final StringBuilder arguments = new StringBuilder();
  }

  private final Map<Key, Held> calls = new TreeMap<>();
  private final Map<Name, Key> byId = new HashMap<>();
  private final Map<Integer, Key> latest = new HashMap<>();
  private final Map<Integer, Integer> next = new HashMap<>();

  /** Take the {@code tool_calls} member of a delta, or ({@code whole}) of a message. */
  void add(int choice, @Nullable Object given, boolean whole) {
    if (!(given instanceof List<?> list)) {
      return;
    }
    for (int position = 0; position < list.size(); position++) {
      Map<String, @Nullable Object> call = Json.object(list.get(position));
      if (call == null) {
        continue;
      }
      Map<String, @Nullable Object> function = Json.object(call.get("function"));
      if (function == null) {
        function = Map.of();
      }
      String id = shown(call.get("id"));
      // A whole answer's index may be the same in all of them.
      Key key = whole ? new Key(choice, position) : key(choice, call.get("index"), id);
      Held held = calls.computeIfAbsent(key, each -> new Held());
      held.id = held.id.isEmpty() ? id : held.id;
      held.name = held.name.isEmpty() ? shown(function.get("name")) : held.name;
      held.arguments.append(shown(function.get("arguments")));
    }
  }

  /** The calls in the order of their choices and indexes. */
  List<ToolCall> all() {
    List<ToolCall> all = new ArrayList<>();
    calls.forEach(
        (key, held) ->
            all.add(
                new ToolCall(
                    held.id.isEmpty() ? null : held.id,
                    held.name,
                    held.arguments.toString(),
                    key.choice,
                    key.index)));
    return all;
  }

  /**
   * Where a delta belongs. Some servers send no index: then a new id is a new call, and no id the
   * last one.
   */
  private Key key(int choice, @Nullable Object index, String id) {
    Key key;
    if (index instanceof Number number && Envelopes.isWhole(number)) {
      // no server has so many
      key = new Key(choice, (int) Math.min(number.longValue(), Integer.MAX_VALUE - 1));
    } else if (!id.isEmpty()) {
      Key known = byId.get(new Name(choice, id));
      key = known != null ? known : new Key(choice, next.getOrDefault(choice, 0));
    } else {
      key = latest.getOrDefault(choice, new Key(choice, 0));
    }
    if (!id.isEmpty()) {
      byId.putIfAbsent(new Name(choice, id), key);
    }
    latest.put(choice, key);
    next.merge(choice, key.index + 1, Math::max);
    return key;
  }

  private static String shown(@Nullable Object value) {
    return Json.says(value) ? Json.shown(value) : "";
  }
}
