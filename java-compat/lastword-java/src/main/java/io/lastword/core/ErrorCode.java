package io.lastword.core;

import io.lastword.Category;
import io.lastword.Codes;
import io.lastword.core.Registry.CodeInfo;
import io.lastword.core.Registry.MessagePattern;
import java.math.BigInteger;
import java.util.LinkedHashMap;
import java.util.Map;
import java.util.regex.Matcher;
import org.jspecify.annotations.Nullable;

/**
 * The code that an error's fields stand for.
 *
 * @param details what was read beside it
 * @param unsure whether a code that nobody here knows was all there was to go by (ERR-6)
 */
record ErrorCode(String code, Map<String, @Nullable Object> details, boolean unsure) {

  /** The steps of CLS-2 from the second on, in their order: the first that answers decides. */
  static ErrorCode of(Map<String, @Nullable Object> fields, @Nullable Integer status) {
    String raw = textOf(fields, "code");
    String type = textOf(fields, "type");
    String param = textOf(fields, "param");
    String own = own(raw, fields);
    if (own != null) {
      return new ErrorCode(own, Map.of(), false);
    }
    Map<String, @Nullable Object> details = new LinkedHashMap<>();
    if (!raw.isEmpty() && statusIn(raw) == null) {
      details.put("upstream_code", raw);
    }
    String code = byWords(named(type, param), String.valueOf(fields.get("message")), details);
    if (code == null) {
      code = byStatus(status, param);
    }
    if (code != null) {
      return new ErrorCode(code, details, false);
    }
    // CLS-2, 8 and 9
    return new ErrorCode(
        Registry.GENERIC_TYPES.getOrDefault(type, Codes.INTERNAL_SERVER_ERROR),
        details,
        !details.isEmpty());
  }

  /** CLS-2, 2 and 3: a code that the contract knows, or that is the contract's own (ERR-6). */
  private static @Nullable String own(String raw, Map<String, @Nullable Object> fields) {
    if (Registry.CODES.containsKey(raw)) {
      return raw;
    }
    String alias = Registry.CODE_ALIASES.get(raw);
    if (alias != null || raw.isEmpty() || statusIn(raw) != null) {
      return alias;
    }
    boolean contract =
        fields.containsKey("contract")
            || Classifier.categoryOf(Classifier.text(fields.get("category"))) != null;
    return contract ? raw : null;
  }

  /** CLS-2, 4: what the type names, else the param. */
  private static @Nullable String named(String type, String param) {
    String code = Registry.TYPE_ALIASES.get(type);
    return code != null ? code : Registry.PARAM_CODES.get(param);
  }

  /** CLS-2, 5: what the message says; of a code that is {@code named} already, only its details. */
  private static @Nullable String byWords(
      @Nullable String named, String message, Map<String, @Nullable Object> details) {
    String said = Text.cut(message, Classifier.MAX_RAW);
    for (MessagePattern each : Registry.MESSAGE_PATTERNS) {
      if (named != null && !named.equals(each.code())) {
        continue;
      }
      Matcher matcher = each.pattern().matcher(said);
      if (matcher.find()) {
        for (int i = 0; i < each.details().size(); i++) {
          details.put(each.details().get(i), whole(matcher.group(i + 1)));
        }
        return each.code();
      }
    }
    return named;
  }

  /** CLS-2, 6 and 7: what the status says, and a 404 that blames the model. */
  private static @Nullable String byStatus(@Nullable Integer status, String param) {
    if (status == null) {
      return null;
    }
    if (status == 404 && param.equals("model")) {
      return Codes.MODEL_NOT_FOUND;
    }
    String code = Registry.STATUS_CODES.get(status);
    if (code != null) {
      return code;
    }
    return status >= 500 ? Codes.INTERNAL_SERVER_ERROR : Codes.INVALID_REQUEST_ERROR;
  }

  /**
   * ERR-6: an unknown code takes the body's category, else that of its status, and is never guessed
   * retryable.
   */
  static Category categoryOfUnknown(
      Map<String, @Nullable Object> fields, @Nullable Integer status) {
    Category said = Classifier.categoryOf(Classifier.text(fields.get("category")));
    if (said != null) {
      return said;
    }
    CodeInfo byStatus =
        status == null ? null : Registry.CODES.get(Registry.STATUS_CODES.getOrDefault(status, ""));
    return byStatus == null ? Category.FIXABLE : byStatus.category();
  }

  /** The HTTP error status that a body gives as its code, as vLLM (400) and LiteLLM ("400") do. */
  static @Nullable Integer statusIn(@Nullable String text) {
    return text != null && text.matches("[45][0-9][0-9]") ? Integer.valueOf(text) : null;
  }

  private static Object whole(String digits) {
    return digits.length() < 10 ? (Object) Integer.valueOf(digits) : new BigInteger(digits);
  }

  private static String textOf(Map<String, @Nullable Object> fields, String name) {
    String text = Classifier.text(fields.get(name));
    return text == null ? "" : text;
  }
}
