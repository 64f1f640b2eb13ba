package io.lastword.core;

import com.fasterxml.jackson.core.JsonFactory;
import com.fasterxml.jackson.core.JsonLocation;
import com.fasterxml.jackson.core.JsonProcessingException;
import com.fasterxml.jackson.core.StreamReadConstraints;
import com.fasterxml.jackson.core.json.JsonReadFeature;
import com.fasterxml.jackson.core.util.DefaultPrettyPrinter;
import com.fasterxml.jackson.core.util.Separators;
import com.fasterxml.jackson.databind.DeserializationFeature;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.ObjectWriter;
import java.math.BigDecimal;
import java.math.BigInteger;
import java.util.ArrayList;
import java.util.Collection;
import java.util.Collections;
import java.util.IdentityHashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.Set;
import org.jspecify.annotations.Nullable;

/**
 * JSON as plain values: maps, lists, strings, numbers, booleans and null. The only class that knows
 * Jackson.
 *
 * <p>It reads what servers really write: {@code NaN} is a number, the last of two members with one
 * name counts. Anything behind the value makes it no JSON, and so do more than 1000 levels.
 */
public final class Json {

  private static final int MAX_DEPTH = 1000;
  private static final int MAX_DIGITS = 4300;
  private static final ObjectMapper STRICT = mapper(false);
  private static final ObjectMapper MAPPER = mapper(true);

  // others write whatever their toString says, or change
  private static final Set<Class<?>> NUMBERS =
      Set.of(
          Byte.class,
          Short.class,
          Integer.class,
          Long.class,
          Float.class,
          Double.class,
          BigInteger.class,
          BigDecimal.class);

  private static final ObjectWriter FOR_PEOPLE = MAPPER.writer(spaced());

  private Json() {}

  /** What was to be JSON is none; the message says where. */
  public static final class NotJsonException extends Exception {
    private static final long serialVersionUID = 1L;

    NotJsonException(String message, @Nullable Throwable cause) {
      super(message, cause);
    }
  }

  /** The value that {@code text} is. */
  public static @Nullable Object parse(String text) throws NotJsonException {
    return parse(MAPPER, text);
  }

  /** The same, without {@code NaN} and the like. */
  public static @Nullable Object parseStrictly(String text) throws NotJsonException {
    return parse(STRICT, text);
  }

  /**
   * {@code value} as compact JSON.
   *
   * @throws NotJsonException if it holds something that is neither a map, list, string, number,
   *     boolean nor null
   */
  public static String write(@Nullable Object value) throws NotJsonException {
    String foreign = foreign(value, 0);
    if (foreign != null) {
      throw new NotJsonException(foreign, null);
    }
    try {
      return MAPPER.writeValueAsString(value);
    } catch (JsonProcessingException e) {
      throw new NotJsonException(e.getOriginalMessage(), e);
    }
  }

  /**
   * {@code value} as text for people: itself if it is a text, else its JSON with a space behind
   * commas and colons.
   */
  public static String shown(@Nullable Object value) {
    if (value instanceof String text) {
      return text;
    }
    try {
      return FOR_PEOPLE.writeValueAsString(value);
    } catch (JsonProcessingException e) {
      return "a value that cannot be shown";
    }
  }

  /** Whether a member says anything: not null, false, zero, or empty (CLS-8). */
  static boolean says(@Nullable Object value) {
    if (value instanceof String text) {
      return !text.isEmpty();
    }
    if (value instanceof Boolean flag) {
      return flag;
    }
    if (value instanceof Number number) {
      return number.doubleValue() != 0;
    }
    if (value instanceof Map<?, ?> map) {
      return !map.isEmpty();
    }
    return value instanceof Collection<?> list ? !list.isEmpty() : value != null;
  }

  /** {@code value} if it is a JSON object, else null. */
  @SuppressWarnings("unchecked") // whatever comes from parse has strings as keys
  public static @Nullable Map<String, @Nullable Object> object(@Nullable Object value) {
    return value instanceof Map<?, ?> ? (Map<String, @Nullable Object>) value : null;
  }

  /**
   * A copy of {@code value} that nobody can change, at any depth; nulls, numbers and the order of
   * members are as they were. What is no JSON is left as it is, for {@link #write} to refuse.
   */
  public static @Nullable Object frozen(@Nullable Object value) {
    return frozen(value, 0, new IdentityHashMap<>());
  }

  /** The same of an object. */
  public static Map<String, @Nullable Object> frozen(
      Map<String, ? extends @Nullable Object> value) {
    return Objects.requireNonNull(object(frozen((Object) value)), "a map stays a map");
  }

  private static @Nullable Object frozen(
      @Nullable Object value, int depth, Map<Object, Object> copies) {
    if (depth > MAX_DEPTH || !(value instanceof Map || value instanceof Collection)) {
      return value;
    }
    // What holds itself is found here on the way down, and left for write to refuse.
    Object known = copies.putIfAbsent(value, value);
    if (known != null) {
      return known;
    }
    Object copy;
    if (value instanceof Map<?, ?> map) {
      Map<Object, @Nullable Object> members = new LinkedHashMap<>();
      map.forEach((name, each) -> members.put(name, frozen(each, depth + 1, copies)));
      copy = Collections.unmodifiableMap(members);
    } else {
      List<@Nullable Object> items = new ArrayList<>();
      ((Collection<?>) value).forEach(each -> items.add(frozen(each, depth + 1, copies)));
      copy = Collections.unmodifiableList(items);
    }
    copies.put(value, copy);
    return copy;
  }

  private static @Nullable Object parse(ObjectMapper mapper, String text) throws NotJsonException {
    try {
      return mapper.readValue(text, Object.class);
    } catch (JsonProcessingException e) {
      throw new NotJsonException(where(e), null);
    }
  }

  /** Where it stops being JSON, and not what stands there: a model's words, or a caller's. */
  private static String where(JsonProcessingException error) {
    JsonLocation at = error.getLocation();
    return at == null
        ? "no JSON"
        : "no JSON from line " + at.getLineNr() + ", column " + at.getColumnNr();
  }

  private static ObjectMapper mapper(boolean nonNumericNumbers) {
    StreamReadConstraints limits =
        StreamReadConstraints.builder()
            .maxStringLength(Integer.MAX_VALUE)
            .maxNameLength(Integer.MAX_VALUE)
            .maxNumberLength(MAX_DIGITS)
            .maxNestingDepth(MAX_DEPTH)
            .build();
    return new ObjectMapper(
            JsonFactory.builder()
                .configure(JsonReadFeature.ALLOW_NON_NUMERIC_NUMBERS, nonNumericNumbers)
                .streamReadConstraints(limits)
                .build())
        .enable(DeserializationFeature.FAIL_ON_TRAILING_TOKENS);
  }

  private static @Nullable String foreign(@Nullable Object value, int depth) {
    if (depth > MAX_DEPTH) {
      return "nested deeper than " + MAX_DEPTH + " levels";
    }
    if (value instanceof Map<?, ?> map) {
      for (Map.Entry<?, ?> entry : map.entrySet()) {
        if (!(entry.getKey() instanceof String)) {
          return "a key that is no string: " + entry.getKey();
        }
        String inner = foreign(entry.getValue(), depth + 1);
        if (inner != null) {
          return inner;
        }
      }
      return null;
    }
    if (value instanceof Collection<?> list) {
      for (Object each : list) {
        String inner = foreign(each, depth + 1);
        if (inner != null) {
          return inner;
        }
      }
      return null;
    }
    if (value instanceof Double number && !Double.isFinite(number)
        || value instanceof Float single && !Float.isFinite(single)) {
      return "a number that JSON does not have: " + value;
    }
    if (value == null
        || value instanceof String
        || value instanceof Boolean
        || NUMBERS.contains(value.getClass())) {
      return null;
    }
    return "a "
        + value.getClass().getName()
        + " (give maps, lists, strings, numbers, booleans and null)";
  }

  private static DefaultPrettyPrinter spaced() {
    Separators separators =
        Separators.createDefaultInstance()
            .withRootSeparator("")
            .withObjectFieldValueSpacing(Separators.Spacing.AFTER)
            .withObjectEntrySpacing(Separators.Spacing.AFTER)
            .withObjectEmptySeparator("")
            .withArrayValueSpacing(Separators.Spacing.AFTER)
            .withArrayEmptySeparator("");
    DefaultPrettyPrinter printer = new DefaultPrettyPrinter(separators);
    printer.indentObjectsWith(DefaultPrettyPrinter.NopIndenter.instance);
    printer.indentArraysWith(DefaultPrettyPrinter.NopIndenter.instance);
    return printer;
  }
}
