package io.lastword.conformance;

import io.lastword.core.Json;
import java.time.Duration;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.Callable;
import org.jspecify.annotations.Nullable;

/** One call to make, as the runner gives it. */
public final class Case {

  private final String baseUrl;
  private final String apiKey;
  private final Map<String, Object> call;

  /** {@code case} of contract/schemas/adapter.json. */
  public Case(Map<String, Object> given) {
    baseUrl = (String) given.get("base_url");
    apiKey = (String) given.get("api_key");
    call = map(given.get("call"));
  }

  public String baseUrl() {
    return baseUrl;
  }

  public String apiKey() {
    return apiKey;
  }

  public String endpoint() {
    return (String) call.get("endpoint");
  }

  public boolean stream() {
    return Boolean.TRUE.equals(call.get("stream"));
  }

  public int retries() {
    return (Integer) call.get("retries");
  }

  /** Make the call as often as the case wants it made; what came of it last. */
  public Map<String, Object> repeated(Callable<Map<String, Object>> make) throws Exception {
    Map<String, Object> result = Map.of();
    for (int left = (Integer) call.get("repeat"); left > 0; left--) {
      result = make.call();
    }
    return result;
  }

  public @Nullable String profile() {
    return (String) call.get("profile");
  }

  /** A limit of the case; null: off; {@code otherwise} where the case has none. */
  public @Nullable Duration timeout(String name, @Nullable Duration otherwise) {
    Map<String, Object> timeouts = map(call.get("timeouts"));
    if (!timeouts.containsKey(name)) {
      return otherwise;
    }
    return timeouts.get(name) instanceof Number seconds
        ? Duration.ofNanos((long) (seconds.doubleValue() * 1e9))
        : null;
  }

  /** The caller leaves after so many chunks; 0: it does not. */
  public int leaveAfterEvents() {
    return cancel("after_events");
  }

  /** The caller cancels from outside after so many milliseconds; 0: it does not. */
  public int cancelAfterMillis() {
    return cancel("after_ms");
  }

  /** The body, without {@code stream}. */
  public Map<String, Object> request() {
    Map<String, Object> body = new LinkedHashMap<>(map(call.get("request")));
    body.remove("stream");
    return body;
  }

  /**
   * What its messages say, for a library that has messages of its own.
   *
   * @throws Adapter.Unable if one is something else than a user's text
   */
  public List<String> userTexts() throws Adapter.Unable {
    List<String> texts = new ArrayList<>();
    for (Object each : list(request().get("messages"))) {
      if (!(map(each).get("role").equals("user")
          && map(each).get("content") instanceof String text)) {
        throw new Adapter.Unable("a message that is no user's text");
      }
      texts.add(text);
    }
    return texts;
  }

  private int cancel(String how) {
    Map<String, Object> cancel = call.get("cancel") == null ? Map.of() : map(call.get("cancel"));
    return cancel.get(how) instanceof Number number ? number.intValue() : 0;
  }

  public static Map<String, Object> map(Object value) {
    Map<String, Object> map = Json.object(value);
    if (map == null) {
      throw new IllegalArgumentException("not an object: " + value);
    }
    return map;
  }

  public static List<?> list(Object value) {
    return value instanceof List<?> list ? list : List.of();
  }
}
