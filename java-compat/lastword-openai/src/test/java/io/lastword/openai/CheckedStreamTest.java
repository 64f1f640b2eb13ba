package io.lastword.openai;

import static io.lastword.Answers.chunk;
import static io.lastword.Answers.server;
import static io.lastword.Answers.silence;
import static io.lastword.Answers.stream;
import static io.lastword.openai.OpenAi.HI;
import static io.lastword.openai.OpenAi.client;
import static io.lastword.openai.OpenAi.lastword;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertInstanceOf;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import com.openai.client.OpenAIClient;
import com.openai.core.http.StreamResponse;
import com.openai.errors.OpenAIException;
import com.openai.models.chat.completions.ChatCompletionChunk;
import io.lastword.Codes;
import io.lastword.Timeouts;
import io.lastword.errors.CancelledException;
import io.lastword.errors.RequestTimeoutException;
import io.lastword.scripted.ScriptedServer;
import io.lastword.vectors.Vectors;
import java.io.InputStream;
import java.time.Duration;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/** How a stream of openai-java goes on and ends with the decorator. */
@Timeout(30)
class CheckedStreamTest {

  @Test
  void aStreamThatBreaksBeforeItsFirstChunkIsTriedAgain() throws Exception {
    try (ScriptedServer server =
        server(List.of(stream(Map.of("end", "truncate")), stream("[DONE]", "Hi")))) {
      OpenAIClient client = client(server.baseUrl(), LastwordHttpClient.create(), 1);
      try (StreamResponse<ChatCompletionChunk> stream =
          client.chat().completions().createStreaming(HI)) {
        assertEquals(2, stream.stream().count());
      }
      assertEquals("2", server.requests().get(1).headers.get("x-request-attempt"));
      client.close();
    }
  }

  @Test
  void anErrorThatIsNullIsNone() throws Exception {
    Map<String, Object> data = new LinkedHashMap<>(Vectors.map(chunk("Hi", null), "data"));
    data.put("error", null);
    Map<String, Object> exchange =
        Map.of(
            "status",
            200,
            "steps",
            List.of(Map.of("data", data), chunk(null, "stop"), Map.of("data", "[DONE]")));
    try (ScriptedServer server = server(List.of(exchange))) {
      OpenAIClient client = client(server.baseUrl(), LastwordHttpClient.create(), 0);
      try (StreamResponse<ChatCompletionChunk> stream =
          client.chat().completions().createStreaming(HI)) {
        assertEquals(2, stream.stream().count());
      }
      client.close();
    }
  }

  @Test
  void silenceBeforeTheFirstTokenEndsByItsTimer() throws Exception {
    Timeouts limits = Timeouts.none().withFirstToken(Duration.ofMillis(300));
    try (ScriptedServer server = server(List.of(Map.of("steps", List.of(silence()))))) {
      OpenAIClient client = client(server.baseUrl(), LastwordHttpClient.create(limits), 0);
      OpenAIException first =
          assertThrows(
              OpenAIException.class, () -> client.chat().completions().createStreaming(HI));
      assertEquals(
          Codes.FIRST_TOKEN_TIMEOUT,
          assertInstanceOf(RequestTimeoutException.class, lastword(first)).code());
      assertTrue(ScriptedServer.becomes(() -> server.requests().get(0).disconnectedAt != 0, 2000));
      client.close();
    }
  }

  @Test
  void silenceAfterItDoesSoToo() throws Exception {
    Timeouts limits = Timeouts.none().withIdle(Duration.ofMillis(300));
    try (ScriptedServer server = server(List.of(stream(silence(), "Hel")))) {
      OpenAIClient client = client(server.baseUrl(), LastwordHttpClient.create(limits), 0);
      try (StreamResponse<ChatCompletionChunk> stream =
          client.chat().completions().createStreaming(HI)) {
        OpenAIException idle =
            assertThrows(OpenAIException.class, () -> stream.stream().forEach(each -> {}));
        assertEquals(Codes.GENERATION_STALLED, lastword(idle).code());
      }
      assertTrue(ScriptedServer.becomes(() -> server.requests().get(0).disconnectedAt != 0, 2000));
      client.close();
    }
  }

  /** openai-java closes a stream that it reads itself, and nobody this one. */
  @Test
  void aTimerClosesTheSocketOfAStreamThatIsReadRaw() throws Exception {
    Timeouts limits = Timeouts.none().withIdle(Duration.ofMillis(300));
    try (ScriptedServer server = server(List.of(stream(silence(), "Hel")))) {
      OpenAIClient client = client(server.baseUrl(), LastwordHttpClient.create(limits), 0);
      InputStream raw = client.chat().completions().withRawResponse().createStreaming(HI).body();
      assertThrows(OpenAIException.class, raw::readAllBytes);
      assertTrue(ScriptedServer.becomes(() -> server.requests().get(0).disconnectedAt != 0, 2000));
      client.close();
    }
  }

  @Test
  void anInterruptEndsTheWaitAndTheSocket() throws Exception {
    try (ScriptedServer server = server(List.of(stream(silence(), "Hel")))) {
      OpenAIClient client = client(server.baseUrl(), LastwordHttpClient.create(), 0);
      CompletableFuture<Throwable> thrown = new CompletableFuture<>();
      Thread reader =
          new Thread(
              () -> {
                try (StreamResponse<ChatCompletionChunk> stream =
                    client.chat().completions().createStreaming(HI)) {
                  stream.stream().forEach(each -> {});
                  thrown.complete(new AssertionError("it completed"));
                } catch (OpenAIException e) {
                  thrown.complete(e);
                }
              });
      reader.start();
      assertTrue(ScriptedServer.becomes(() -> !server.requests().isEmpty(), 5000));
      Thread.sleep(200);
      reader.interrupt();
      assertInstanceOf(CancelledException.class, lastword(thrown.get(5, TimeUnit.SECONDS)));
      assertTrue(ScriptedServer.becomes(() -> server.requests().get(0).disconnectedAt != 0, 2000));
      client.close();
    }
  }
}
