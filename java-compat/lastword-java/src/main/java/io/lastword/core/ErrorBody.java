package io.lastword.core;

import io.lastword.Codes;
import io.lastword.errors.ErrorInfo;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.LinkedHashMap;
import java.util.Map;
import org.jspecify.annotations.Nullable;

/** The contract's error body (the ERR rules), for whoever passes an error on. */
public final class ErrorBody {

  private ErrorBody() {}

  /** As JSON, UTF-8. */
  public static byte[] of(ErrorInfo info) {
    Map<String, @Nullable Object> members = new LinkedHashMap<>();
    members.put("message", info.message());
    members.put("type", info.type() == null || info.type().isEmpty() ? info.code() : info.type());
    members.put("param", info.param());
    members.put("code", info.code());
    members.put("category", info.category().word());
    members.put("retryable", info.retryable());
    members.put("retry_after_ms", info.retryAfter() == null ? null : millis(info.retryAfter()));
    members.put("request_id", info.requestId());
    members.put("origin", info.origin().word());
    members.put("details", info.details());
    members.put("contract", Codes.CONTRACT);
    Map<String, Object> body = Map.of("error", members);
    return Json.shown(body).getBytes(StandardCharsets.UTF_8);
  }

  /** A hint in milliseconds, rounded up: stock SDKs take 0 for none. */
  public static long millis(Duration hint) {
    return (hint.toNanos() + 999_999) / 1_000_000;
  }
}
