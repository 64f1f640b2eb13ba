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

  /**
   * The order of CLS-2: the body's own code; what its words say; its type; its status; then a
   * generic type.
   */
  static ErrorCode of(Map<String, @Nullable Object> fields, @Nullable Integer status) {
    String raw = Classifier.text(fields.get("code"));
    String type = orEmpty(Classifier.text(fields.get("type")));
    String param = orEmpty(Classifier.text(fields.get("param")));
    Map<String, @Nullable Object> details = new LinkedHashMap<>();
    if (raw != null && !raw.isEmpty()) {
      if (Registry.CODES.containsKey(raw)) {
        return new ErrorCode(raw, details, false);
      }
      String alias = Registry.CODE_ALIASES.get(raw);
      if (alias != null) {
        return new ErrorCode(alias, details, false);
      }
      if (statusIn(raw) == null) {
        if (fields.containsKey("contract")
            || Classifier.categoryOf(Classifier.text(fields.get("category"))) != null) {
          return new ErrorCode(raw, details, false);
        }
        details.put("upstream_code", raw);
      }
    }
    String code = Registry.TYPE_ALIASES.get(type);
    if (code == null) {
      code = Registry.PARAM_CODES.get(param);
    }
    String said = Text.cut(String.valueOf(fields.get("message")), Classifier.MAX_RAW);
    for (MessagePattern each : Registry.MESSAGE_PATTERNS) {
      if (code != null && !code.equals(each.code())) {
        continue;
      }
      Matcher matcher = each.pattern().matcher(said);
      if (matcher.find()) {
        for (int i = 0; i < each.details().size(); i++) {
          details.put(each.details().get(i), whole(matcher.group(i + 1)));
        }
        return new ErrorCode(each.code(), details, false);
      }
    }
    if (code == null && Integer.valueOf(404).equals(status) && param.equals("model")) {
      code = Codes.MODEL_NOT_FOUND;
    }
    if (code == null && status != null) {
      code = Registry.STATUS_CODES.get(status);
      if (code == null) {
        code = status >= 500 ? Codes.INTERNAL_SERVER_ERROR : Codes.INVALID_REQUEST_ERROR;
      }
    }
    if (code != null) {
      return new ErrorCode(code, details, false);
    }
    return new ErrorCode(
        Registry.GENERIC_TYPES.getOrDefault(type, Codes.INTERNAL_SERVER_ERROR),
        details,
        !details.isEmpty());
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

  private static String orEmpty(@Nullable String text) {
    return text == null ? "" : text;
  }
}
