package io.lastword;

import static io.lastword.Answers.HI;
import static io.lastword.Answers.answer;
import static io.lastword.Answers.builder;
import static io.lastword.Answers.client;
import static io.lastword.Answers.server;
import static io.lastword.Answers.silence;
import static io.lastword.Answers.stream;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertInstanceOf;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertSame;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.lastword.errors.CancelledException;
import io.lastword.errors.RequestTimeoutException;
import io.lastword.errors.StreamIncompleteException;
import io.lastword.scripted.ScriptedServer;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicReference;
import java.util.concurrent.locks.LockSupport;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/** What the loop over a stream sees: its chunks, how it ends, and who may end it. */
@Timeout(30)
class AnswerStreamTest {

  private static final int ROUNDS = 500;

  @Test
  void aWholeStreamEndsQuietly() throws Exception {
    try (ScriptedServer server = server(List.of(stream("[DONE]", "Hel", "lo")));
        LastwordClient client = client(server);
        AnswerStream stream = client.chat().completions().createStreaming(HI)) {
      assertNull(stream.outcome());
      List<String> texts = stream.stream().map(Chunk::text).toList();
      assertEquals(List.of("Hel", "lo", ""), texts);
      assertEquals("Hello", assertInstanceOf(Completed.class, stream.outcome()).text());
    }
  }

  @Test
  void aStreamThatIsCutThrowsWhereTheLoopWouldHaveEnded() throws Exception {
    try (ScriptedServer server = server(List.of(stream(Map.of("end", "truncate"), "Hel", "lo")));
        LastwordClient client = client(server);
        AnswerStream stream = client.chat().completions().createStreaming(HI)) {
      StringBuilder text = new StringBuilder();
      StreamIncompleteException error =
          assertThrows(
              StreamIncompleteException.class,
              () -> {
                for (Chunk chunk : stream) {
                  text.append(chunk.text());
                }
              });
      assertEquals("Hello", text.toString());
      assertEquals("Hello", error.partial().text());
      assertInstanceOf(Incomplete.class, stream.outcome());
      assertSame(
          error,
          assertThrows(StreamIncompleteException.class, stream::hasNext),
          "the same each time");
    }
  }

  @Test
  void closingFromAnotherThreadEndsTheWaitAndTheSocket() throws Exception {
    try (ScriptedServer server = server(List.of(stream(silence(), "Hel")));
        LastwordClient client = client(server);
        AnswerStream stream = client.chat().completions().createStreaming(HI)) {
      stream.next();
      CompletableFuture.delayedExecutor(200, TimeUnit.MILLISECONDS).execute(stream::close);
      CancelledException error = assertThrows(CancelledException.class, stream::hasNext);
      assertEquals("Hel", error.partial().text());
      assertTrue(ScriptedServer.becomes(() -> server.requests().get(0).disconnectedAt != 0, 2000));
      assertInstanceOf(Cancelled.class, stream.outcome());
    }
  }

  @Test
  void anInterruptEndsTheWaitAndTheSocketAndStaysSet() throws Exception {
    try (ScriptedServer server = server(List.of(stream(silence(), "Hel")));
        LastwordClient client = client(server)) {
      AtomicReference<Throwable> thrown = new AtomicReference<>();
      Thread reader =
          new Thread(
              () -> {
                try (AnswerStream stream = client.chat().completions().createStreaming(HI)) {
                  stream.forEach(chunk -> {});
                } catch (CancelledException e) {
                  thrown.set(
                      Thread.currentThread().isInterrupted()
                          ? e
                          : new AssertionError("the flag is lost"));
                }
              });
      reader.start();
      assertTrue(ScriptedServer.becomes(() -> !server.requests().isEmpty(), 5000));
      Thread.sleep(200);
      reader.interrupt();
      reader.join(5000);
      assertInstanceOf(CancelledException.class, thrown.get());
      assertTrue(thrown.get().getMessage().contains("interrupted"));
      assertTrue(ScriptedServer.becomes(() -> server.requests().get(0).disconnectedAt != 0, 2000));
    }
  }

  @Test
  void aStreamThatIsDroppedIsClosedOnceItIsCollected() throws Exception {
    try (ScriptedServer server = server(List.of(stream(silence(), "Hel")));
        LastwordClient client = client(server)) {
      client.chat().completions().createStreaming(HI).next();
      assertTrue(
          ScriptedServer.becomes(
              () -> {
                System.gc();
                return server.requests().get(0).disconnectedAt != 0;
              },
              10_000));
    }
  }

  @Test
  void theTimersRunOverTheBody() throws Exception {
    try (ScriptedServer server = server(List.of(stream(silence(), "Hel")));
        LastwordClient client =
            builder(server).timeouts(Timeouts.defaults().withIdle(Duration.ofMillis(300))).build();
        AnswerStream stream = client.chat().completions().createStreaming(HI)) {
      stream.next();
      RequestTimeoutException error = assertThrows(RequestTimeoutException.class, stream::hasNext);
      assertEquals(Timer.IDLE, error.timer());
      assertEquals(Codes.GENERATION_STALLED, error.code());
      assertEquals(Origin.CLIENT, error.origin());
      assertEquals(Timer.IDLE, error.attempts().get(0).timer());
    }
  }

  @Test
  void theCallersOwnTimeIsNotTheServersSilence() throws Exception {
    try (ScriptedServer server = server(List.of(stream("[DONE]", "Hel", "lo")));
        LastwordClient client =
            builder(server).timeouts(Timeouts.defaults().withIdle(Duration.ofMillis(200))).build();
        AnswerStream stream = client.chat().completions().createStreaming(HI)) {
      for (Chunk chunk : stream) {
        Thread.sleep(300);
      }
      assertInstanceOf(Completed.class, stream.outcome());
    }
  }

  /** The JDK gives a connection to the next request as soon as the body before has ended. */
  @Test
  void leavingAnAnswerEndsNobodyElsesRequest() throws Exception {
    List<Map<String, Object>> exchanges = new ArrayList<>();
    Map<String, Object> redirect =
        Map.of(
            "status",
            308,
            "framing",
            "content-length",
            "headers",
            Map.of("location", "/v1/chat/completions"),
            "steps",
            List.of(Map.of("text", "moved")));
    for (int i = 0; i < ROUNDS; i++) {
      exchanges.addAll(List.of(stream("[DONE]", "a"), redirect, answer("Hi")));
    }
    try (ScriptedServer server = server(exchanges);
        LastwordClient client = builder(server).retry(RetryPolicy.never()).build()) {
      Endpoint<ChatRequest> chat = client.chat().completions();
      for (int i = 0; i < ROUNDS; i++) {
        AnswerStream stream = chat.createStreaming(HI);
        stream.next();
        LockSupport.parkNanos(i * 2_000L); // its end comes before, while and after it is left
        stream.close();
        assertEquals("Hi", chat.create(HI).text());
      }
    }
  }
}
