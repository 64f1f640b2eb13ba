package io.lastword.transport;

import io.lastword.Codes;
import io.lastword.core.BaseUrl;
import io.lastword.core.Classifier;
import io.lastword.core.Limits;
import io.lastword.core.ResponseHead;
import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.net.URI;
import java.net.URISyntaxException;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.util.Arrays;
import java.util.HashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.RejectedExecutionException;
import org.jspecify.annotations.Nullable;

/** The exchanges of a call, one attempt after the other: send, follow 307 and 308, read. */
final class Wire {

  private static final int MAX_REDIRECTS = 5;
  private static final Set<String> DECODED = Set.of("gzip", "x-gzip", "deflate");
  private static final Set<String> OF_THE_BYTES = Set.of("content-encoding", "content-length");
  private static final Set<String> FOR_ANYBODY =
      Set.of(
          "user-agent",
          "accept",
          "accept-encoding",
          "content-type",
          "x-request-id",
          "x-request-attempt",
          "request-timeout-ms");

  private final Transport transport;
  private final String baseUrl;
  private final Call call;

  Wire(Transport transport, String baseUrl, Call call) {
    this.transport = transport;
    this.baseUrl = baseUrl;
    this.call = call;
  }

  /** Begin an attempt and wait for the head of its answer. */
  Exchange send() throws Failure {
    Map<String, String> headers = call.beginAttempt();
    URI url = url();
    for (int redirects = 0; redirects <= MAX_REDIRECTS; redirects++) {
      Exchange exchange = begin(url, headers);
      HttpResponse.ResponseInfo head;
      try {
        head = exchange.head();
      } catch (Stopped e) {
        letGo(exchange);
        throw call.stopped();
      } catch (IOException e) {
        letGo(exchange);
        throw call.broken(e);
      }
      URI target = target(url, head);
      if (target == null) {
        answered(exchange, head);
        return exchange;
      }
      drain(exchange); // closed now it could end the next request, which may have its connection
      call.guard().resume();
      if (!sameOrigin(target, url)) {
        // whatever is a key is for the server that the caller named
        headers = new HashMap<>(headers);
        headers.keySet().retainAll(FOR_ANYBODY);
      }
      url = target;
    }
    String message =
        "more than "
            + MAX_REDIRECTS
            + " redirects, the last to "
            + BaseUrl.shown(url.toString())
            + ": look at the base URL and at what is in front of the server";
    throw new Failure(Classifier.error(Codes.INVALID_REQUEST_ERROR, message).build(), null);
  }

  /** One layer of compression is undone; of a refusal, which its status has said, what can be. */
  private void answered(Exchange exchange, HttpResponse.ResponseInfo info) throws Failure {
    ResponseHead head = ResponseHead.of(info.statusCode(), info.headers().map());
    String given = head.headers().getOrDefault("content-encoding", "").toLowerCase(Locale.ROOT);
    List<String> layers =
        Arrays.stream(given.split(","))
            .map(String::strip)
            .filter(each -> !each.isEmpty() && !each.equals("identity"))
            .toList();
    boolean decoded = layers.size() == 1 && DECODED.contains(layers.get(0));
    if (decoded) {
      exchange.inflate(layers.get(0), !head.ok());
    }
    call.answered(decoded ? head.without(OF_THE_BYTES) : head);
    if (!decoded && !layers.isEmpty() && head.ok()) {
      letGo(exchange);
      throw call.malformed(
          "the answer is encoded as " + given + ", which is not understood here", new byte[0]);
    }
  }

  private Exchange begin(URI url, Map<String, String> headers) throws Failure {
    HttpRequest request = request(url, headers);
    call.goesTo(url);
    try {
      call.guard().allowed(); // a call that is over sends nothing
      HttpClient client = transport.client(call.request().timeouts().connect());
      return new Exchange(client, request, call.guard(), transport.workers());
    } catch (Stopped e) {
      throw call.stopped();
    } catch (RejectedExecutionException e) { // the client has been closed meanwhile
      throw call.guard().cancelled() ? call.stopped() : call.broken(new IOException(e));
    } catch (UncheckedIOException e) { // no descriptor is free for the JDK's selector
      throw call.broken(new IOException(e));
    }
  }

  /** Read the body, and let the connection go. */
  byte[] read(Exchange exchange) throws Failure {
    boolean success = call.answer().ok() && !call.request().stream();
    int limit = success ? Limits.ANSWER : Limits.REFUSAL;
    boolean refused = call.refused();
    if (refused) {
      call.guard().drain(Limits.REFUSAL_TIME);
    }
    ByteArrayOutputStream body = new ByteArrayOutputStream();
    try {
      byte[] piece;
      while (body.size() <= limit && (piece = exchange.read()) != null) {
        body.writeBytes(piece);
      }
    } catch (Stopped e) {
      if (!refused || call.guard().cancelled()) {
        throw call.stopped();
      }
    } catch (IOException e) {
      if (!refused) {
        throw call.broken(e);
      }
    } finally {
      letGo(exchange);
    }
    if (body.size() > Limits.ANSWER) {
      throw call.malformed("the answer is larger than " + Limits.ANSWER + " bytes", new byte[0]);
    }
    return body.toByteArray();
  }

  /**
   * Read what follows the terminal event, within limits, so that the connection can be used again.
   */
  void drain(Exchange exchange) {
    call.guard().drain(Limits.DRAIN_TIME);
    int size = 0;
    try {
      byte[] piece;
      while (size <= Limits.DRAIN && (piece = exchange.read()) != null) {
        size += piece.length;
      }
    } catch (Stopped | IOException e) {
      // the outcome is fixed; the connection is closed instead
    } finally {
      letGo(exchange);
    }
  }

  /** The connection goes back to the pool if its body was read, else it is closed. */
  void letGo(Exchange exchange) {
    call.guard().release();
    exchange.close();
  }

  private URI url() throws Failure {
    String url = baseUrl + call.request().path();
    try {
      return URI.create(url);
    } catch (IllegalArgumentException e) {
      throw unsendable(url, e);
    }
  }

  private HttpRequest request(URI url, Map<String, String> headers) throws Failure {
    HttpRequest.BodyPublisher content =
        call.request().content().length == 0
            ? HttpRequest.BodyPublishers.noBody()
            : HttpRequest.BodyPublishers.ofByteArray(call.request().content());
    try {
      HttpRequest.Builder builder =
          HttpRequest.newBuilder(url).method(call.request().method(), content);
      headers.forEach(builder::header);
      return builder.build();
    } catch (IllegalArgumentException e) {
      throw unsendable(url.toString(), e);
    }
  }

  /** The JDK's message holds the URL, and so would a cause. */
  private static Failure unsendable(String url, IllegalArgumentException e) {
    String why = String.valueOf(e.getMessage()).replace(url, BaseUrl.shown(url));
    return new Failure(JdkErrors.unsendable(why), null);
  }

  /** Where to go instead (RFC 9110 §15.4.8, §15.4.9); null if the answer is here. */
  private static @Nullable URI target(URI url, HttpResponse.ResponseInfo head) {
    String location = head.headers().firstValue("location").orElse("");
    if ((head.statusCode() != 307 && head.statusCode() != 308) || location.isEmpty()) {
      return null;
    }
    try {
      URI target =
          location.startsWith("?")
              ? new URI(url.toString().split("\\?", 2)[0] + location)
              : url.resolve(location);
      boolean http =
          "http".equalsIgnoreCase(target.getScheme())
              || "https".equalsIgnoreCase(target.getScheme());
      return http && target.getHost() != null && target.getPort() < 65536 ? target : null;
    } catch (IllegalArgumentException | URISyntaxException e) {
      return null;
    }
  }

  private static boolean sameOrigin(URI one, URI other) {
    return one.getScheme().equalsIgnoreCase(other.getScheme())
        && one.getHost().equalsIgnoreCase(other.getHost())
        && port(one) == port(other);
  }

  private static int port(URI url) {
    int usual = url.getScheme().equalsIgnoreCase("https") ? 443 : 80;
    return url.getPort() < 0 ? usual : url.getPort();
  }
}
