package io.lastword.openai;

import static io.lastword.Answers.TOO_LONG;
import static io.lastword.Answers.answer;
import static io.lastword.Answers.failure;
import static io.lastword.Answers.server;
import static io.lastword.Answers.stream;
import static io.lastword.openai.OpenAi.HI;
import static io.lastword.openai.OpenAi.client;
import static io.lastword.openai.OpenAi.http;
import static io.lastword.openai.OpenAi.lastword;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertInstanceOf;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import com.openai.client.OpenAIClient;
import com.openai.core.http.HttpResponse;
import com.openai.core.http.StreamResponse;
import com.openai.errors.BadRequestException;
import com.openai.errors.InternalServerException;
import com.openai.errors.OpenAIException;
import com.openai.models.chat.completions.ChatCompletionChunk;
import io.lastword.Codes;
import io.lastword.errors.ConnectionFailedException;
import io.lastword.errors.ContextLengthExceededException;
import io.lastword.errors.LastwordException;
import io.lastword.errors.StreamIncompleteException;
import io.lastword.scripted.ScriptedServer;
import io.lastword.scripted.ScriptedServer.Listening;
import java.io.ByteArrayOutputStream;
import java.io.PrintWriter;
import java.io.StringWriter;
import java.nio.charset.StandardCharsets;
import java.util.Base64;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.zip.GZIPOutputStream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** What a user of openai-java sees with the decorator: on the JDK's client, and around OkHttp. */
@Timeout(30)
class LastwordHttpClientTest {

  @ParameterizedTest
  @ValueSource(strings = {"jdk", "okhttp"})
  void goodAnswersReadAsEver(String kind) throws Exception {
    try (ScriptedServer server = server(List.of(answer("Hello"), stream("[DONE]", "Hel", "lo")))) {
      OpenAIClient client = client(server.baseUrl(), http(kind), 0);
      assertEquals(
          Optional.of("Hello"),
          client.chat().completions().create(HI).choices().get(0).message().content());
      StringBuilder text = new StringBuilder();
      try (StreamResponse<ChatCompletionChunk> stream =
          client.chat().completions().createStreaming(HI)) {
        stream.stream()
            .forEach(each -> text.append(each.choices().get(0).delta().content().orElse("")));
      }
      assertEquals("Hello", text.toString());
      assertEquals(server.requests().get(0).connection, server.requests().get(1).connection);
      client.close();
    }
  }

  @ParameterizedTest
  @ValueSource(strings = {"jdk", "okhttp"})
  void anIntegerCodeIsReadAndNotRetried(String kind) throws Exception {
    try (ScriptedServer server = server(List.of(failure(400, 400, TOO_LONG)))) {
      OpenAIClient client = client(server.baseUrl(), http(kind), 2);
      BadRequestException error =
          assertThrows(BadRequestException.class, () -> client.chat().completions().create(HI));
      assertEquals(Optional.of(Codes.CONTEXT_LENGTH_EXCEEDED), error.code());
      LastwordException ours =
          assertInstanceOf(ContextLengthExceededException.class, lastword(error));
      assertEquals(2048, ours.details().get("max_model_len"));
      assertEquals(400, ours.status());
      assertEquals(server.requests().get(0).headers.get("x-request-id"), ours.requestId());
      assertEquals(1, server.requests().size());
      client.close();
    }
  }

  @ParameterizedTest
  @ValueSource(strings = {"jdk", "okhttp"})
  void aCutStreamThrowsOutOfTheLoop(String kind) throws Exception {
    try (ScriptedServer server = server(List.of(stream(Map.of("end", "truncate"), "Hel", "lo")))) {
      OpenAIClient client = client(server.baseUrl(), http(kind), 0);
      try (StreamResponse<ChatCompletionChunk> stream =
          client.chat().completions().createStreaming(HI)) {
        OpenAIException error =
            assertThrows(OpenAIException.class, () -> stream.stream().forEach(each -> {}));
        assertEquals(
            "Hello",
            assertInstanceOf(StreamIncompleteException.class, lastword(error)).partial().text());
      }
      client.close();
    }
  }

  @Test
  void a200ThatIsAnErrorIsOne() throws Exception {
    Map<String, Object> error =
        Map.of("object", "error", "message", "boom", "type", "InternalServerError", "code", 500);
    Map<String, Object> exchange = Map.of("status", 200, "steps", List.of(Map.of("json", error)));
    try (ScriptedServer server = server(List.of(exchange))) {
      OpenAIClient client = client(server.baseUrl(), LastwordHttpClient.create(), 0);
      InternalServerException thrown =
          assertThrows(InternalServerException.class, () -> client.chat().completions().create(HI));
      assertEquals(Optional.of(Codes.INTERNAL_SERVER_ERROR), thrown.code());
      assertTrue(thrown.getMessage().contains("boom"), thrown.getMessage());
      client.close();
    }
  }

  @Test
  void aHintOfDaysEndsTheLoop() throws Exception {
    Map<String, Object> refused =
        new LinkedHashMap<>(failure(429, "rate_limit_exceeded", "tomorrow"));
    refused.put("headers", Map.of("retry-after", "277403"));
    try (ScriptedServer server = server(List.of(refused))) {
      OpenAIClient client = client(server.baseUrl(), LastwordHttpClient.create(), 2);
      OpenAIException error =
          assertThrows(OpenAIException.class, () -> client.chat().completions().create(HI));
      assertEquals(Codes.RATE_LIMIT_EXCEEDED, lastword(error).code());
      assertEquals(1, server.requests().size());
      client.close();
    }
  }

  @Test
  void whatDoesNotGeneratePassesUntouched() throws Exception {
    Map<String, Object> csv =
        Map.of(
            "status", 200,
            "headers", Map.of("content-type", "text/csv"),
            "steps", List.of(Map.of("text", "a,b")));
    Map<String, Object> nothing =
        Map.of(
            "status",
            200,
            "framing",
            "content-length",
            "steps",
            List.of(Map.of("end", "complete")));
    try (ScriptedServer server = server(List.of(csv, nothing))) {
      OpenAIClient client = client(server.baseUrl(), LastwordHttpClient.create(), 0);
      assertEquals(
          "a,b",
          new String(client.files().content("f").body().readAllBytes(), StandardCharsets.UTF_8));
      client.responses().delete("r");
      client.close();
    }
  }

  @Test
  void aServerThatIsNotThereIsSaidToBe() throws Exception {
    try (ScriptedServer server = new ScriptedServer(List.of(), "event", Listening.NO)) {
      OpenAIClient client = client(server.baseUrl(), LastwordHttpClient.create(), 0);
      OpenAIException error =
          assertThrows(OpenAIException.class, () -> client.chat().completions().create(HI));
      assertInstanceOf(ConnectionFailedException.class, lastword(error));
      client.close();
    }
  }

  /** What openai-java reads itself is not said to be compressed once it no longer is. */
  @Test
  void aFileThatCameCompressedIsReadAsItWas() throws Exception {
    ByteArrayOutputStream packed = new ByteArrayOutputStream();
    try (GZIPOutputStream out = new GZIPOutputStream(packed)) {
      out.write("words".getBytes(StandardCharsets.UTF_8));
    }
    String bytes = Base64.getEncoder().encodeToString(packed.toByteArray());
    Map<String, Object> file =
        Map.of(
            "status",
            200,
            "framing",
            "content-length",
            "headers",
            Map.of("content-encoding", "gzip", "content-type", "application/octet-stream"),
            "steps",
            List.of(Map.of("base64", bytes)));
    try (ScriptedServer server = server(List.of(file));
        HttpResponse answer =
            client(server.baseUrl(), LastwordHttpClient.create(), 0).files().content("file-1")) {
      assertEquals("words", new String(answer.body().readAllBytes(), StandardCharsets.UTF_8));
      assertEquals(List.of(), answer.headers().values("content-encoding"));
      assertEquals(List.of(), answer.headers().values("content-length"));
    }
  }

  @Test
  void anAddressThatIsNoneIsNamedWithoutItsSecrets() {
    String url = "http://u:s3cret@127.0.0.1:9/v1 ";
    OpenAIClient client = client(url, LastwordHttpClient.create(), 0);
    LastwordException error =
        lastword(assertThrows(OpenAIException.class, () -> client.chat().completions().create(HI)));
    assertEquals(Codes.INVALID_REQUEST_ERROR, error.code());
    assertTrue(error.getMessage().contains("http://…@127.0.0.1:9/v1 "), error.getMessage());
    StringWriter trace = new StringWriter();
    error.printStackTrace(new PrintWriter(trace));
    assertFalse(trace.toString().contains("s3cret"), trace.toString());
    client.close();
  }

  @ParameterizedTest
  @ValueSource(strings = {"{\"data\": null}", "{\"data\": [{\"object\": \"model\"}]}", "[]"})
  void aListOfModelsThatIsNoneIsMalformed(String body) throws Exception {
    Map<String, Object> exchange =
        Map.of(
            "status", 200,
            "headers", Map.of("content-type", "application/json"),
            "steps", List.of(Map.of("text", body)));
    try (ScriptedServer server = server(List.of(exchange))) {
      OpenAIClient client = client(server.baseUrl(), LastwordHttpClient.create(), 0);
      OpenAIException thrown = assertThrows(OpenAIException.class, () -> client.models().list());
      assertEquals(Codes.MALFORMED_RESPONSE, lastword(thrown).code());
      client.close();
    }
  }
}
