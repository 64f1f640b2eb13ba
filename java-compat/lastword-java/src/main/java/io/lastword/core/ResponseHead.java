package io.lastword.core;

import io.lastword.Codes;
import io.lastword.errors.ErrorInfo;
import java.util.Collections;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.TreeMap;

/**
 * The head of an answer.
 *
 * @param headers by lower-case names; of a field that a proxy added once more, the first counts
 */
public record ResponseHead(int status, Map<String, String> headers) {

  /** As an HTTP client gives it. */
  public static ResponseHead of(int status, Map<String, List<String>> fields) {
    Map<String, String> headers = new TreeMap<>();
    fields.forEach((name, values) -> headers.put(name.toLowerCase(Locale.ROOT), values.get(0)));
    return new ResponseHead(status, Collections.unmodifiableMap(headers));
  }

  /** This without some of its fields. */
  public ResponseHead without(Iterable<String> names) {
    Map<String, String> kept = new TreeMap<>(headers);
    names.forEach(kept::remove);
    return new ResponseHead(status, Collections.unmodifiableMap(kept));
  }

  /** Whether it says yes; a body that breaks off takes nothing from a no. */
  public boolean ok() {
    return 200 <= status && status < 300;
  }

  /**
   * Whether a stream of events follows; if not, the body is an error or cannot be read. A missing
   * type claims nothing else.
   */
  public boolean isStream() {
    return ok() && (type().isEmpty() || type().equals("text/event-stream"));
  }

  /** The error of an answer without events where events were asked for. */
  public ErrorInfo noStream(byte[] body) {
    String what = " with the content type '" + type() + "' where text/event-stream was expected";
    return malformed("HTTP " + status + what, body);
  }

  /** The error of a body that is no JSON. */
  public ErrorInfo noJson(byte[] body) {
    String said = type().isEmpty() ? "no content type" : type();
    return malformed("HTTP " + status + " with a body that is no JSON (" + said + ")", body);
  }

  /** The error of a body that cannot be read. */
  public ErrorInfo malformed(String what, byte[] body) {
    return Classifier.error(Codes.MALFORMED_RESPONSE, what)
        .raw(Classifier.raw(body))
        .status(status)
        .build();
  }

  /** The media type without its parameters (RFC 9110 §8.3). */
  private String type() {
    String type = headers.getOrDefault("content-type", "").split("[;,]", 2)[0];
    return type.strip().toLowerCase(Locale.ROOT);
  }
}
