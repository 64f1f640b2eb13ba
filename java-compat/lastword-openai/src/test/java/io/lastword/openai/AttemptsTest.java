package io.lastword.openai;

import static io.lastword.Answers.answer;
import static io.lastword.Answers.failure;
import static io.lastword.Answers.server;
import static io.lastword.openai.OpenAi.HI;
import static io.lastword.openai.OpenAi.client;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNotEquals;

import com.openai.client.OpenAIClient;
import com.openai.core.RequestOptions;
import io.lastword.scripted.Received;
import io.lastword.scripted.ScriptedServer;
import java.time.Duration;
import java.util.List;
import java.util.Map;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/** What the attempts of one call have in common (HDR-1), though openai-java makes them above us. */
@Timeout(30)
class AttemptsTest {

  private static final Map<String, Object> BUSY = failure(503, "engine_unavailable", "starting");

  @Test
  void attemptsOfOneCallHaveItsIdAndTheNextCallAnother() throws Exception {
    try (ScriptedServer server = server(List.of(BUSY, answer("Hi"), BUSY, answer("Hi")))) {
      OpenAIClient client = client(server.baseUrl(), LastwordHttpClient.create(), 1);
      RequestOptions same = RequestOptions.builder().timeout(Duration.ofSeconds(9)).build();
      client.chat().completions().create(HI, same);
      client.chat().completions().create(HI, same);
      twoIdsOfTwoAttempts(server.requests());
      client.close();
    }
  }

  @Test
  void soDoThoseOfAnAsynchronousOne() throws Exception {
    try (ScriptedServer server = server(List.of(BUSY, answer("Hi"), BUSY, answer("Hi")))) {
      OpenAIClient client = client(server.baseUrl(), LastwordHttpClient.create(), 1);
      client.async().chat().completions().create(HI).get(10, TimeUnit.SECONDS);
      client.async().chat().completions().create(HI).get(10, TimeUnit.SECONDS);
      twoIdsOfTwoAttempts(server.requests());
      client.close();
    }
  }

  private static void twoIdsOfTwoAttempts(List<Received> requests) {
    List<String> ids = requests.stream().map(each -> each.headers.get("x-request-id")).toList();
    assertEquals(4, ids.size());
    assertEquals(ids.get(0), ids.get(1));
    assertEquals(ids.get(2), ids.get(3));
    assertNotEquals(ids.get(0), ids.get(2));
  }
}
