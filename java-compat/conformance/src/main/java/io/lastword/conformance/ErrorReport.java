package io.lastword.conformance;

import io.lastword.core.Registry;
import java.util.LinkedHashMap;
import java.util.Map;
import java.util.Optional;
import org.jspecify.annotations.Nullable;

/**
 * From what a library says of an error to a code of the contract, by the same rule for every
 * library: first a word that it hands over as the error's code, then a number that it hands over as
 * the code, or the HTTP status, and last its class.
 */
public final class ErrorReport {

  private ErrorReport() {}

  /** The report on a call that ended in an error. */
  public static Map<String, Object> of(
      String byClass, @Nullable String code, @Nullable Integer status, String message) {
    String word = code == null ? null : Registry.CODE_ALIASES.getOrDefault(code, code);
    if (word == null || !word.matches("[a-z]+(_[a-z]+)*")) {
      word =
          ofNumber(code)
              .or(() -> ofNumber(status == null ? null : status.toString()))
              .orElse(byClass);
    }
    Registry.CodeInfo known = Registry.CODES.get(word);
    Map<String, Object> result = new LinkedHashMap<>();
    result.put("outcome", known == null ? "failed" : known.outcome().word());
    result.put("code", word);
    result.put("message", message);
    if (status != null) {
      result.put("status", status);
    }
    return result;
  }

  private static Optional<String> ofNumber(@Nullable String number) {
    if (number == null || !number.matches("[45]\\d\\d")) {
      return Optional.empty();
    }
    String rest = number.startsWith("4") ? "invalid_request_error" : "internal_server_error";
    return Optional.of(Registry.STATUS_CODES.getOrDefault(Integer.valueOf(number), rest));
  }
}
