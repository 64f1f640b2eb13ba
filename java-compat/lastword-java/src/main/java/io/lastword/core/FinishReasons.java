package io.lastword.core;

import io.lastword.Codes;
import io.lastword.Origin;
import io.lastword.Profile;
import io.lastword.core.Registry.FinishReason;
import io.lastword.errors.ErrorInfo;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collections;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.function.Predicate;
import java.util.stream.Collectors;
import org.jspecify.annotations.Nullable;

/** How the choices of an answer ended, and what is wrong with that (the OUT and FIN rules). */
final class FinishReasons {

  // choices that are missing and named; n may be a billion
  private static final int MAX_NAMED = 100;

  private final int expected;
  private final @Nullable Profile profile;
  private final Map<Integer, @Nullable String> reasons = new LinkedHashMap<>();

  FinishReasons(int expected, @Nullable Profile profile) {
    this.expected = expected;
    this.profile = profile;
  }

  /** A choice has come, with or without an end. */
  void see(int choice) {
    reasons.putIfAbsent(choice, null);
  }

  /** A choice has ended; a bad end is never taken back (FIN-3). */
  void finish(int choice, String reason) {
    FinishReason held = known(reasons.get(choice));
    if (reasons.get(choice) == null || held != null && held.success()) {
      reasons.put(choice, reason);
    }
  }

  /** By choice, null where it has not ended. */
  Map<Integer, @Nullable String> all() {
    return Collections.unmodifiableMap(new TreeMap<>(reasons));
  }

  /** What is known of the end of a choice. */
  @Nullable FinishReason of(int choice) {
    return known(reasons.get(choice));
  }

  /** What a completed answer should still be told about. */
  List<String> warnings() {
    List<String> warnings = new ArrayList<>();
    for (String reason : reasons.values()) {
      FinishReason known = known(reason);
      if (known != null && known.warning() != null) {
        warnings.add(known.warning());
      }
    }
    return warnings;
  }

  /** The error that an end stands for, whatever follows it (FIN-2). */
  @Nullable ErrorInfo bad() {
    for (Map.Entry<Integer, @Nullable String> each : reasons.entrySet()) {
      FinishReason known = known(each.getValue());
      if (known != null && known.code() != null) {
        String message =
            "the engine ended choice "
                + each.getKey()
                + " with finish_reason '"
                + each.getValue()
                + "'";
        return Classifier.error(known.code(), message, Origin.ENGINE)
            .details(details(each))
            .build();
      }
    }
    return null;
  }

  /** The choices that never came or never ended. */
  @Nullable ErrorInfo unfinished() {
    List<Integer> missing = new ArrayList<>();
    for (int index = 0; index < expected && missing.size() < MAX_NAMED; index++) {
      if (!reasons.containsKey(index)) {
        missing.add(index);
      }
    }
    boolean never = !missing.isEmpty();
    if (profile == null || !profile.acceptsNullFinishReason()) {
      reasons.forEach(
          (index, reason) -> {
            if (reason == null) {
              missing.add(index);
            }
          });
      Collections.sort(missing);
    }
    if (missing.isEmpty()) {
      return null;
    }
    String names = missing.stream().map(String::valueOf).collect(Collectors.joining(", "));
    String message = "the answer ended without a finish_reason for choice " + names;
    return Classifier.error(
            Codes.STREAM_INCOMPLETE,
            never ? message : message + hint(Profile::acceptsNullFinishReason))
        .details(Map.of("unfinished_choices", missing, "expected_choices", expected))
        .build();
  }

  /** An end that this version does not know. */
  @Nullable ErrorInfo unknown() {
    for (Map.Entry<Integer, @Nullable String> each : reasons.entrySet()) {
      if (each.getValue() != null && known(each.getValue()) == null) {
        String ended =
            "choice " + each.getKey() + " ended with the finish_reason '" + each.getValue() + "'";
        return Classifier.error(
                Codes.UNKNOWN_FINISH_REASON, ended + ", which this version does not know")
            .details(details(each))
            .build();
      }
    }
    return null;
  }

  /** To be told to whoever meets a server that one of the profiles was made for. */
  static String hint(Predicate<Profile> ability) {
    String names =
        Arrays.stream(Profile.values())
            .filter(ability)
            .map(Profile::word)
            .collect(Collectors.joining(" or "));
    return " (if this server always ends so, the profile " + names + " accepts it)";
  }

  private static Map<String, @Nullable Object> details(
      Map.Entry<Integer, @Nullable String> finished) {
    Map<String, @Nullable Object> details = new LinkedHashMap<>();
    details.put("finish_reason", finished.getValue());
    details.put("choice", finished.getKey());
    return details;
  }

  private static @Nullable FinishReason known(@Nullable String reason) {
    return reason == null ? null : Registry.FINISH_REASONS.get(reason);
  }
}
