package io.lastword;

import static io.lastword.Answers.answer;
import static io.lastword.Answers.failure;
import static io.lastword.Answers.server;
import static io.lastword.Answers.silence;
import static io.lastword.Answers.stream;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.lastword.errors.LastwordException;
import io.lastword.scripted.ChildJvm;
import io.lastword.scripted.ScriptedServer;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CompletableFuture;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/**
 * When {@code main} returns, the JVM exits: whatever was called, and whether or not anything was
 * closed.
 */
@Timeout(60)
class JvmExitTest {

  @ParameterizedTest
  @ValueSource(
      strings = {
        "whole",
        "error",
        "thrown",
        "cancelled",
        "open stream",
        "asynchronous",
        "subscribed"
      })
  void theProcessExits(String how) throws Exception {
    Map<String, Object> exchange =
        switch (how) {
          case "whole" -> answer("Hi");
          case "error", "thrown" -> failure(400, 400, "no");
          default -> stream(silence(), "a");
        };
    try (ScriptedServer server = server(List.of(exchange));
        ChildJvm child = new ChildJvm(Child.class, List.of(), server.baseUrl(), how)) {
      assertTrue(ScriptedServer.becomes(() -> !server.requests().isEmpty(), 20_000), "no request");
      child.endInput();
      String ended = child.exit(20);
      assertTrue(ended.equals("0") || (how.equals("thrown") && ended.startsWith("1 ")), ended);
      assertEquals(1, server.requests().size());
    }
  }

  /** What the process runs. */
  static final class Child {
    public static void main(String[] arguments) throws Exception {
      LastwordClient client =
          LastwordClient.builder().baseUrl(arguments[0]).retry(RetryPolicy.never()).build();
      Endpoint<ChatRequest> chat = client.chat().completions();
      switch (arguments[1]) {
        case "whole", "thrown" -> chat.create(Answers.HI);
        case "error" -> {
          try {
            chat.create(Answers.HI);
            throw new AssertionError("it completed");
          } catch (LastwordException e) {
            // as it should
          }
        }
        case "cancelled" -> {
          AnswerStream stream = chat.createStreaming(Answers.HI);
          stream.next();
          stream.close();
        }
        case "open stream" -> chat.createStreaming(Answers.HI).next();
        case "asynchronous" -> {
          CompletableFuture<Completed> answer = chat.createAsync(Answers.HI);
          System.in.read(); // the server has the request
          assertEquals(false, answer.isDone());
        }
        default -> {
          chat.publish(Answers.HI).subscribe(new Waiting());
          System.in.read();
        }
      }
    }
  }

  private static final class Waiting implements java.util.concurrent.Flow.Subscriber<Chunk> {
    @Override
    public void onSubscribe(java.util.concurrent.Flow.Subscription subscription) {
      subscription.request(Long.MAX_VALUE);
    }

    @Override
    public void onNext(Chunk chunk) {}

    @Override
    public void onError(Throwable error) {}

    @Override
    public void onComplete() {}
  }
}
