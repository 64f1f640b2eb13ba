package io.lastword.openai;

import com.openai.core.RequestOptions;
import com.openai.core.Timeout;
import com.openai.core.http.HttpMethod;
import com.openai.core.http.HttpRequest;
import com.openai.core.http.HttpRequestBody;
import io.lastword.core.Choices;
import io.lastword.core.Json;
import java.io.ByteArrayOutputStream;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.List;
import java.util.Map;
import org.jspecify.annotations.Nullable;

/**
 * What a request asks for, as far as the completeness of its answer goes.
 *
 * @param request with its id, ours where the caller gave none, its attempt and its time (HDR-1 to
 *     HDR-3)
 * @param generates whether the answer has choices: chat completions and completions
 * @param lists whether it is the list of models; nothing else that succeeds is looked at
 * @param choices how many
 * @param attempt 1, 2, … by openai-java's own count
 */
record Asked(
    HttpRequest request,
    String requestId,
    boolean generates,
    boolean lists,
    boolean stream,
    int choices,
    int attempt) {

  /** {@code ours} is the id of a call whose caller gave none. */
  static Asked of(HttpRequest given, RequestOptions options, String ours) {
    HttpRequest.Builder builder = given.toBuilder();
    String theirs = first(given, "x-request-id");
    String id = theirs != null ? theirs : ours;
    builder.replaceHeaders("x-request-id", id);
    int attempt = attemptOf(given);
    builder.replaceHeaders("x-request-attempt", String.valueOf(attempt));
    Timeout limits = options.getTimeout();
    Duration limit = limits == null ? null : JdkHttpClient.limit(limits.request());
    if (limit != null) {
      builder.replaceHeaders("request-timeout-ms", String.valueOf(Math.max(1, limit.toMillis())));
    }
    HttpRequest request = builder.build();
    List<String> path = request.pathSegments();
    String last = path.isEmpty() ? "" : path.get(path.size() - 1);
    boolean generates = request.method() == HttpMethod.POST && last.equals("completions");
    boolean lists = request.method() == HttpMethod.GET && last.equals("models");
    Map<String, @Nullable Object> body = generates ? body(request.body()) : Map.of();
    boolean stream = Boolean.TRUE.equals(body.get("stream"));
    return new Asked(request, id, generates, lists, stream, Choices.expected(body), attempt);
  }

  /** openai-java's own count, 1 for the first. */
  static int attemptOf(HttpRequest request) {
    String count = first(request, "x-stainless-retry-count");
    return count != null && count.matches("\\d{1,6}") ? Integer.parseInt(count) + 1 : 1;
  }

  private static @Nullable String first(HttpRequest request, String header) {
    List<String> values = request.headers().values(header);
    return values.isEmpty() ? null : values.get(0);
  }

  private static Map<String, @Nullable Object> body(@Nullable HttpRequestBody body) {
    if (body == null || !body.repeatable()) {
      return Map.of();
    }
    ByteArrayOutputStream bytes = new ByteArrayOutputStream();
    body.writeTo(bytes);
    try {
      Map<String, @Nullable Object> parsed =
          Json.object(Json.parse(bytes.toString(StandardCharsets.UTF_8)));
      return parsed == null ? Map.of() : parsed;
    } catch (Json.NotJsonException e) {
      return Map.of();
    }
  }
}
