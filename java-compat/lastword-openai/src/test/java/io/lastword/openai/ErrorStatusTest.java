package io.lastword.openai;

import static io.lastword.Answers.answer;
import static io.lastword.Answers.failure;
import static io.lastword.Answers.server;
import static io.lastword.openai.OpenAi.HI;
import static io.lastword.openai.OpenAi.client;
import static io.lastword.openai.OpenAi.lastword;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertThrows;

import com.openai.client.OpenAIClient;
import com.openai.client.okhttp.OkHttpClient;
import com.openai.core.http.HttpClient;
import com.openai.errors.OpenAIServiceException;
import io.lastword.Codes;
import io.lastword.errors.LastwordException;
import io.lastword.scripted.ScriptedServer;
import io.lastword.scripted.ScriptedServer.Listening;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CompletionException;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/** The status of an error is the one that came, also where openai-java had to be told another. */
@Timeout(30)
class ErrorStatusTest {

  @Test
  void whereNoAnswerCameThereIsNone() throws Exception {
    try (ScriptedServer absent = new ScriptedServer(List.of(), "event", Listening.NO)) {
      OpenAIClient client = client(absent.baseUrl(), LastwordHttpClient.create(), 0);
      CompletionException thrown =
          assertThrows(
              CompletionException.class,
              () -> client.async().chat().completions().create(HI).join());
      LastwordException error = lastword(thrown);
      assertEquals(Codes.CONNECTION_FAILED, error.code());
      assertNull(error.status());
      assertFalse(error.getMessage().contains("502"), error.getMessage());
      client.close();
    }
  }

  @Test
  void a200ThatCannotBeReadHad200() throws Exception {
    Map<String, Object> page =
        Map.of(
            "status", 200,
            "headers", Map.of("content-type", "text/html"),
            "steps", List.of(Map.of("text", "<html>")));
    try (ScriptedServer server = server(List.of(page))) {
      OpenAIClient client = client(server.baseUrl(), LastwordHttpClient.create(), 0);
      LastwordException error =
          lastword(
              assertThrows(
                  OpenAIServiceException.class, () -> client.chat().completions().create(HI)));
      assertEquals(Codes.MALFORMED_RESPONSE, error.code());
      assertEquals(200, error.status());
      client.close();
    }
  }

  @Test
  void noServerCanSayAnotherInOurPlace() throws Exception {
    Map<String, Object> missing = new HashMap<>(failure(404, "not_found", "no such model"));
    missing.put("headers", Map.of(LastwordErrors.STATUS, "418"));
    try (ScriptedServer server = server(List.of(missing, missing))) {
      for (HttpClient http : List.of(LastwordHttpClient.create(), OkHttpClient.builder().build())) {
        OpenAIClient client = client(server.baseUrl(), http, 0);
        OpenAIServiceException thrown =
            assertThrows(
                OpenAIServiceException.class, () -> client.chat().completions().create(HI));
        assertEquals(404, lastword(thrown).status());
        client.close();
      }
    }
  }

  /** Its head tells already; it is tried again like any other. */
  @Test
  void oneInAnUnknownEncodingIsAnErrorResponseToo() throws Exception {
    Map<String, Object> packed =
        Map.of(
            "status", 200,
            "headers", Map.of("content-type", "application/json", "content-encoding", "br"),
            "steps", List.of(Map.of("text", "?")));
    try (ScriptedServer server = server(List.of(packed, packed, packed, answer("Hi")))) {
      OpenAIClient client = client(server.baseUrl(), LastwordHttpClient.create(), 1);
      OpenAIServiceException thrown =
          assertThrows(OpenAIServiceException.class, () -> client.chat().completions().create(HI));
      assertEquals(Codes.MALFORMED_RESPONSE, lastword(thrown).code());
      assertEquals(200, lastword(thrown).status());
      assertFalse(client.async().chat().completions().create(HI).join().choices().isEmpty());
      assertEquals(4, server.requests().size());
      client.close();
    }
  }
}
