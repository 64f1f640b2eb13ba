package io.lastword.openai;

import static io.lastword.Answers.TOO_LONG;
import static io.lastword.Answers.answer;
import static io.lastword.Answers.server;
import static io.lastword.Answers.silence;
import static io.lastword.openai.OpenAi.HI;
import static io.lastword.openai.OpenAi.client;
import static io.lastword.openai.OpenAi.lastword;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertInstanceOf;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import com.openai.client.OpenAIClient;
import com.openai.client.okhttp.OkHttpClient;
import com.openai.core.RequestOptions;
import com.openai.core.Timeout;
import com.openai.core.http.HttpClient;
import com.openai.errors.OpenAIException;
import io.lastword.Codes;
import io.lastword.Timeouts;
import io.lastword.errors.LastwordException;
import io.lastword.scripted.ScriptedServer;
import java.time.Duration;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** Whole bodies with the decorator: what came of them counts, and no timer is left out. */
@org.junit.jupiter.api.Timeout(30)
class AnswerCheckTest {

  private static final RequestOptions QUICK =
      RequestOptions.builder()
          .timeout(Timeout.builder().request(Duration.ofMillis(500)).build())
          .build();

  private static HttpClient http(String kind, Timeouts timeouts) {
    return kind.equals("jdk")
        ? LastwordHttpClient.create(timeouts)
        : LastwordHttpClient.around(OkHttpClient.builder().build(), timeouts);
  }

  private static Map<String, Object> json(int status, Object body, Map<String, Object> end) {
    Map<String, Object> type = Map.of("content-type", "application/json");
    List<Object> steps = List.of(Map.of("json", body), end);
    return Map.of("status", status, "headers", type, "steps", steps);
  }

  private static LastwordException thrown(Runnable call) {
    return lastword(assertThrows(OpenAIException.class, call::run));
  }

  @ParameterizedTest
  @ValueSource(strings = {"jdk", "okhttp"})
  void aRefusalWhoseBodyDoesNotEndSaysWhatCame(String kind) throws Exception {
    Map<String, Object> body = Map.of("error", Map.of("message", TOO_LONG, "code", 400));
    try (ScriptedServer server =
        server(List.of(json(400, body, Map.of("end", "truncate")), json(400, body, silence())))) {
      OpenAIClient client = client(server.baseUrl(), http(kind, Timeouts.defaults()), 2);
      for (int i = 0; i < 2; i++) {
        LastwordException error = thrown(() -> client.chat().completions().create(HI));
        assertEquals(Codes.CONTEXT_LENGTH_EXCEEDED, error.code());
      }
      assertEquals(2, server.requests().size());
      client.close();
    }
  }

  @ParameterizedTest
  @ValueSource(strings = {"jdk", "okhttp"})
  void whatComesInPlaceOfAStreamHasItsTimer(String kind) throws Exception {
    try (ScriptedServer server = server(List.of(json(200, Map.of(), silence())))) {
      Timeouts timeouts = Timeouts.none().withFirstToken(Duration.ofMillis(300));
      OpenAIClient client = client(server.baseUrl(), http(kind, timeouts), 2);
      LastwordException error = thrown(() -> client.chat().completions().createStreaming(HI));
      assertEquals(Codes.FIRST_TOKEN_TIMEOUT, error.code());
      assertEquals(1, server.requests().size());
      client.close();
    }
  }

  /** RTY-9, whoever waits: nobody knows whether the server is still at it. */
  @ParameterizedTest
  @ValueSource(strings = {"jdk", "okhttp"})
  void aTimerThatFiredIsNotFollowedByAnotherAttempt(String kind) throws Exception {
    List<Map<String, Object>> stalls =
        List.of(Map.of("end", "stall"), json(200, Map.of(), silence()));
    for (Map<String, Object> stall : stalls) {
      for (boolean later : List.of(false, true)) {
        Map<String, Object> exchange =
            stall.containsKey("end") ? Map.of("steps", List.of(stall)) : stall;
        try (ScriptedServer server = server(List.of(exchange, answer("Hi")))) {
          OpenAIClient client = client(server.baseUrl(), http(kind, Timeouts.defaults()), 2);
          LastwordException error = later ? late(client) : thrown(() -> quickly(client));
          assertEquals(Codes.DEADLINE_EXCEEDED, error.code());
          assertEquals(1, server.requests().size());
          client.close();
        }
      }
    }
  }

  private static void quickly(OpenAIClient client) {
    client.chat().completions().create(HI, QUICK);
  }

  private static LastwordException late(OpenAIClient client) {
    ExecutionException error =
        assertThrows(
            ExecutionException.class,
            () -> client.async().chat().completions().create(HI, QUICK).get(10, TimeUnit.SECONDS));
    return lastword(error);
  }

  @ParameterizedTest
  @ValueSource(strings = {"jdk", "okhttp"})
  void anInterruptEndsTheWaitForABody(String kind) throws Exception {
    try (ScriptedServer server = server(List.of(json(200, Map.of(), silence())))) {
      OpenAIClient client = client(server.baseUrl(), http(kind, Timeouts.defaults()), 2);
      CompletableFuture<Throwable> thrown = new CompletableFuture<>();
      Thread caller =
          new Thread(
              () -> {
                try {
                  client.chat().completions().create(HI);
                } catch (RuntimeException e) {
                  thrown.complete(e);
                }
              });
      caller.start();
      assertTrue(ScriptedServer.becomes(() -> !server.requests().isEmpty(), 5000));
      Thread.sleep(200);
      caller.interrupt();
      Throwable error = thrown.get(5, TimeUnit.SECONDS);
      assertInstanceOf(LastwordOpenAIException.class, error);
      assertEquals(Codes.CANCELLED, lastword(error).code());
      client.close();
    }
  }

  @ParameterizedTest
  @ValueSource(strings = {"jdk", "okhttp"})
  void attemptAndTimeAreSent(String kind) throws Exception {
    try (ScriptedServer server =
        server(List.of(json(503, Map.of(), Map.of("end", "truncate")), answer("Hi")))) {
      OpenAIClient client = client(server.baseUrl(), http(kind, Timeouts.defaults()), 1);
      client.chat().completions().create(HI);
      for (int i = 0; i < 2; i++) {
        Map<String, String> sent = server.requests().get(i).headers;
        assertEquals(String.valueOf(i + 1), sent.get("x-request-attempt"));
        assertEquals(600_000, Integer.parseInt(sent.get("request-timeout-ms")), 1_000);
      }
      client.close();
    }
  }

  @Test
  void whatCannotBeDecodedIsNotSaidToBeCut() throws Exception {
    Map<String, Object> headers =
        Map.of("content-type", "text/event-stream", "content-encoding", "gzip");
    List<Object> steps = List.of(Map.of("text", "no gzip at all"));
    try (ScriptedServer server =
        server(List.of(Map.of("status", 200, "headers", headers, "steps", steps)))) {
      OpenAIClient client = client(server.baseUrl(), LastwordHttpClient.create(), 0);
      LastwordException error = thrown(() -> client.chat().completions().createStreaming(HI));
      assertEquals(Codes.MALFORMED_RESPONSE, error.code());
      client.close();
    }
  }

  @ParameterizedTest
  @ValueSource(strings = {"jdk", "okhttp"})
  void closingTheClientEndsWhatWaitsAndWhatWouldBegin(String kind) throws Exception {
    try (ScriptedServer server =
        server(List.of(Map.of("steps", List.of(Map.of("end", "stall")))))) {
      HttpClient http = http(kind, Timeouts.defaults());
      OpenAIClient client = client(server.baseUrl(), http, 2);
      CompletableFuture<Throwable> thrown =
          CompletableFuture.supplyAsync(
              () ->
                  assertThrows(
                      OpenAIException.class, () -> client.chat().completions().create(HI)));
      assertTrue(ScriptedServer.becomes(() -> !server.requests().isEmpty(), 5000));
      http.close();
      assertEquals(Codes.CANCELLED, lastword(thrown.get(5, TimeUnit.SECONDS)).code());
      assertEquals(Codes.CANCELLED, thrown(() -> client.chat().completions().create(HI)).code());
      assertTrue(ScriptedServer.becomes(() -> server.requests().get(0).disconnectedAt != 0, 2000));
    }
  }
}
