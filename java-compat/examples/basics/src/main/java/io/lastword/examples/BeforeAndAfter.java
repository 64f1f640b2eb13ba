package io.lastword.examples;

import com.fasterxml.jackson.annotation.JsonIgnoreProperties;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.sun.net.httpserver.HttpServer;
import io.lastword.ChatRequest;
import io.lastword.LastwordClient;
import io.lastword.errors.ContextLengthExceededException;
import java.io.IOException;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.nio.charset.StandardCharsets;
import java.util.List;
import java.util.concurrent.atomic.AtomicInteger;

/**
 * A prompt that does not fit, to a server that says so, by two clients: one that reads every body
 * as an answer, as SDKs have done, and lastword.
 *
 * <p>The server answers as vLLM 0.8 did: the error is the whole body, and its code a number.
 */
public final class BeforeAndAfter {

  private static final String REFUSAL =
      "{\"object\":\"error\",\"message\":\"This model's maximum context length is 2048 tokens. However, you requested 4012 tokens"
          + " (12 in the messages, 4000 in the completion). Please reduce the length of the messages or completion.\","
          + "\"type\":\"BadRequestError\",\"param\":null,\"code\":400}";

  private BeforeAndAfter() {}

  /** What the old client takes every body for. */
  @JsonIgnoreProperties(ignoreUnknown = true)
  public record OldResult(String id, String object, List<Object> choices) {}

  public static void main(String[] arguments) throws Exception {
    AtomicInteger requests = new AtomicInteger();
    HttpServer server = serve(requests);
    String baseUrl = "http://127.0.0.1:" + server.getAddress().getPort() + "/v1";
    System.out.println("the server says, with HTTP 400:\n  " + REFUSAL + "\n");

    OldResult result = before(baseUrl);
    System.out.println("before: " + result);
    System.out.println(
        "        no message, no code: so it was tried again, "
            + requests.getAndSet(0)
            + " times in all\n");

    try (LastwordClient client = LastwordClient.builder().baseUrl(baseUrl).build()) {
      client
          .chat()
          .completions()
          .create(ChatRequest.builder().model("m").user("hi").maxTokens(4000).build());
    } catch (ContextLengthExceededException e) {
      System.out.println("after:  " + e.getClass().getSimpleName() + ": " + e.getMessage());
      System.out.println("        " + e.details() + ", sent " + requests.get() + " time");
    }
    server.stop(0);
  }

  /**
   * As it was done: the status is not looked at, the body becomes a result, and a result without
   * choices is tried again.
   */
  private static OldResult before(String baseUrl) throws IOException, InterruptedException {
    HttpClient http = HttpClient.newHttpClient();
    String body =
        "{\"model\":\"m\",\"messages\":[{\"role\":\"user\",\"content\":\"hi\"}],\"max_tokens\":4000}";
    HttpRequest request =
        HttpRequest.newBuilder(URI.create(baseUrl + "/chat/completions"))
            .POST(HttpRequest.BodyPublishers.ofString(body))
            .build();
    OldResult result = new OldResult(null, null, null);
    for (int attempt = 0; attempt < 3 && result.choices() == null; attempt++) {
      HttpResponse<String> response = http.send(request, HttpResponse.BodyHandlers.ofString());
      result = new ObjectMapper().readValue(response.body(), OldResult.class);
    }
    return result;
  }

  private static HttpServer serve(AtomicInteger requests) throws IOException {
    HttpServer server =
        HttpServer.create(new InetSocketAddress(InetAddress.getLoopbackAddress(), 0), 0);
    server.createContext(
        "/",
        exchange -> {
          requests.incrementAndGet();
          exchange.getRequestBody().readAllBytes();
          byte[] refusal = REFUSAL.getBytes(StandardCharsets.UTF_8);
          exchange.getResponseHeaders().add("content-type", "application/json");
          exchange.sendResponseHeaders(400, refusal.length);
          exchange.getResponseBody().write(refusal);
          exchange.close();
        });
    server.start();
    return server;
  }
}
