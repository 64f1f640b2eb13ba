package io.lastword.openai;

import static io.lastword.Answers.TOO_LONG;
import static io.lastword.Answers.answer;
import static io.lastword.Answers.failure;
import static io.lastword.Answers.server;
import static io.lastword.Answers.stream;
import static io.lastword.openai.OpenAi.HI;
import static io.lastword.openai.OpenAi.client;
import static io.lastword.openai.OpenAi.lastword;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertInstanceOf;
import static org.junit.jupiter.api.Assertions.assertThrows;

import com.openai.client.OpenAIClient;
import com.openai.core.http.AsyncStreamResponse;
import com.openai.models.chat.completions.ChatCompletionChunk;
import com.openai.services.async.chat.ChatCompletionServiceAsync;
import io.lastword.errors.ConnectionFailedException;
import io.lastword.errors.ContextLengthExceededException;
import io.lastword.errors.StreamIncompleteException;
import io.lastword.scripted.ScriptedServer;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionException;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/** openai-java's asynchronous client with the decorator. */
@Timeout(30)
class AsynchronousCallsTest {

  @Test
  void asynchronousCallsFailTheSameWay() throws Exception {
    try (ScriptedServer server =
        server(
            List.of(
                failure(400, 400, TOO_LONG),
                stream(Map.of("end", "reset"), "Hel"),
                answer("Hi")))) {
      OpenAIClient client = client(server.baseUrl(), LastwordHttpClient.create(), 0);
      ChatCompletionServiceAsync chat = client.async().chat().completions();
      CompletionException refused =
          assertThrows(CompletionException.class, () -> chat.create(HI).join());
      assertInstanceOf(ContextLengthExceededException.class, lastword(refused));
      List<String> texts = new ArrayList<>();
      CompletableFuture<Optional<Throwable>> ended = new CompletableFuture<>();
      chat.createStreaming(HI)
          .subscribe(
              new AsyncStreamResponse.Handler<ChatCompletionChunk>() {
                @Override
                public void onNext(ChatCompletionChunk each) {
                  texts.add(each.choices().get(0).delta().content().orElse(""));
                }

                @Override
                public void onComplete(Optional<Throwable> error) {
                  ended.complete(error);
                }
              });
      Throwable broken = ended.get(5, TimeUnit.SECONDS).orElseThrow();
      assertEquals(List.of("Hel"), texts);
      assertInstanceOf(StreamIncompleteException.class, lastword(broken));
      assertFalse(chat.create(HI).get(5, TimeUnit.SECONDS).choices().isEmpty());
      client.close();
    }
  }

  @Test
  void aConnectionThatBreaksIsTriedAgainAlsoAsynchronously() throws Exception {
    Map<String, Object> reset = Map.of("steps", List.of(Map.of("end", "reset")));
    try (ScriptedServer server = server(List.of(reset, answer("Hi"), reset, reset))) {
      OpenAIClient client = client(server.baseUrl(), LastwordHttpClient.create(), 1);
      ChatCompletionServiceAsync chat = client.async().chat().completions();
      assertFalse(chat.create(HI).get(5, TimeUnit.SECONDS).choices().isEmpty());
      CompletionException error =
          assertThrows(CompletionException.class, () -> chat.create(HI).join());
      assertInstanceOf(ConnectionFailedException.class, lastword(error));
      assertEquals(4, server.requests().size());
      client.close();
    }
  }
}
