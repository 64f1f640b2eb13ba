package io.lastword.transport;

import io.lastword.Codes;
import io.lastword.Partial;
import io.lastword.Timeouts;
import io.lastword.core.Choices;
import io.lastword.core.Classifier;
import io.lastword.core.Json;
import io.lastword.errors.LastwordException;
import java.nio.charset.StandardCharsets;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.UUID;
import java.util.regex.Pattern;
import org.jspecify.annotations.Nullable;

/**
 * One call's request, made ready to send and checked before anything is sent.
 *
 * @param path behind the client's base URL; the whole URL for a client that has none
 * @param headers by lower-case names, without those that change from attempt to attempt
 * @param choices how many the answer must have
 * @param attempt the number of the first attempt: 1, or more where somebody above counts them
 */
public record Prepared(
    String method,
    String path,
    Map<String, String> headers,
    byte[] content,
    boolean stream,
    int choices,
    Timeouts timeouts,
    String requestId,
    int attempt) {

  private static final Pattern HEADER_NAME =
      Pattern.compile("[!#$%&'*+\\-.^_`|~0-9A-Za-z]+"); // RFC 9110 §5.6.2
  private static final Pattern HEADER_VALUE = Pattern.compile("[\\t\\x20-\\x7e]*");
  // The first two are ours to set, the others are HTTP/1.1's, and the JDK's client refuses them.
  private static final Set<String> OURS =
      Set.of(
          "x-request-attempt",
          "request-timeout-ms",
          "content-length",
          "transfer-encoding",
          "host",
          "connection",
          "expect",
          "upgrade");

  /**
   * A POST of this body.
   *
   * @throws LastwordException {@code invalid_request_error}, naming what cannot be sent
   */
  public static Prepared post(
      String path,
      Map<String, ? extends @Nullable Object> body,
      boolean stream,
      Map<String, String> headers,
      Timeouts timeouts) {
    Map<String, @Nullable Object> sent = new LinkedHashMap<>(body);
    if (stream) {
      sent.put("stream", true);
    }
    Map<String, String> checked = checked(headers);
    checked.put("accept", stream ? "text/event-stream" : "application/json");
    checked.put("content-type", "application/json");
    int choices = Choices.expected(sent);
    return new Prepared(
        "POST", path, checked, json(sent), stream, choices, timeouts, idOf(checked), 1);
  }

  /** A GET. */
  public static Prepared get(String path, Map<String, String> headers, Timeouts timeouts) {
    Map<String, String> checked = checked(headers);
    checked.put("accept", "application/json");
    return new Prepared("GET", path, checked, new byte[0], false, 1, timeouts, idOf(checked), 1);
  }

  /** Any request, with the body that it brings. */
  public static Prepared any(
      String method,
      String url,
      Map<String, String> headers,
      byte[] content,
      Timeouts timeouts,
      int attempt) {
    Map<String, String> checked = checked(headers);
    return new Prepared(method, url, checked, content, false, 1, timeouts, idOf(checked), attempt);
  }

  /** The request's id (HDR-1); one is made if there is none. */
  private static String idOf(Map<String, String> headers) {
    String id = headers.computeIfAbsent("x-request-id", name -> UUID.randomUUID().toString());
    if (!Classifier.isRequestId(id)) {
      throw invalid("x-request-id", "use 1 to 128 letters, digits and -_.: for the request id");
    }
    return id;
  }

  private static Map<String, String> checked(Map<String, String> given) {
    Map<String, String> headers = new LinkedHashMap<>(given);
    headers.keySet().removeAll(OURS);
    headers.forEach(
        (name, value) -> {
          if (!HEADER_NAME.matcher(name).matches()) {
            throw invalid("header", "'" + name + "' is no name of a header");
          }
          if (!HEADER_VALUE.matcher(value).matches()) {
            throw invalid(name, "a header's value is ASCII without line breaks");
          }
        });
    // nothing that could be cut between its last word and its last byte
    headers.putIfAbsent("accept-encoding", "identity");
    return headers;
  }

  private static byte[] json(Map<String, @Nullable Object> body) {
    for (Map.Entry<String, @Nullable Object> each : body.entrySet()) {
      try {
        Json.write(each.getValue());
      } catch (Json.NotJsonException e) {
        throw invalid(each.getKey(), "cannot be written as JSON: " + e.getMessage());
      }
    }
    try {
      return Json.write(body).getBytes(StandardCharsets.UTF_8);
    } catch (Json.NotJsonException e) {
      throw invalid("body", "cannot be written as JSON: " + e.getMessage());
    }
  }

  /** It has an id all the same, for whoever passes the error on. */
  private static LastwordException invalid(String param, String message) {
    return LastwordException.of(
        Classifier.error(Codes.INVALID_REQUEST_ERROR, param + ": " + message + "; nothing was sent")
            .param(param)
            .requestId(UUID.randomUUID().toString())
            .build(),
        Partial.NOTHING,
        List.of(),
        null);
  }
}
