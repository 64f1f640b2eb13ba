package io.lastword;

import static io.lastword.Answers.HI;
import static io.lastword.Answers.client;
import static io.lastword.Answers.server;
import static io.lastword.Answers.silence;
import static io.lastword.Answers.stream;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertInstanceOf;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.lastword.errors.InvalidRequestException;
import io.lastword.errors.StreamIncompleteException;
import io.lastword.scripted.ScriptedServer;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.concurrent.Flow;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/** Chunks as a Flow.Publisher gives them: no more than asked for, and one last signal. */
@Timeout(30)
class ChunkPublisherTest {

  private static final class Collector implements Flow.Subscriber<Chunk> {
    final List<String> signals = new ArrayList<>();
    volatile Flow.Subscription subscription;
    volatile Throwable error;
    private final long atOnce;

    Collector(long atOnce) {
      this.atOnce = atOnce;
    }

    @Override
    public void onSubscribe(Flow.Subscription given) {
      subscription = given;
      if (atOnce > 0) {
        given.request(atOnce);
      }
    }

    @Override
    public void onNext(Chunk chunk) {
      add(chunk.text());
    }

    @Override
    public void onError(Throwable thrown) {
      error = thrown;
      add("error");
    }

    @Override
    public void onComplete() {
      add("complete");
    }

    private synchronized void add(String signal) {
      signals.add(signal);
    }

    synchronized List<String> signals() {
      return List.copyOf(signals);
    }

    void becomes(List<String> wanted) {
      assertTrue(
          ScriptedServer.becomes(() -> signals().equals(wanted), 5000),
          () -> signals() + ", not " + wanted);
    }
  }

  @Test
  void aWholeAnswerCompletes() throws Exception {
    try (ScriptedServer server = server(List.of(stream("[DONE]", "a", "b")));
        LastwordClient client = client(server)) {
      Collector collector = new Collector(Long.MAX_VALUE);
      client.chat().completions().publish(HI).subscribe(collector);
      collector.becomes(List.of("a", "b", "", "complete"));
    }
  }

  @Test
  void nothingIsSentBeforeItIsAskedForAndNoMoreThanThat() throws Exception {
    try (ScriptedServer server = server(List.of(stream("[DONE]", "a", "b")));
        LastwordClient client = client(server)) {
      Collector collector = new Collector(0);
      client.chat().completions().publish(HI).subscribe(collector);
      Thread.sleep(200);
      assertEquals(0, server.requests().size());
      collector.subscription.request(1);
      collector.becomes(List.of("a"));
      Thread.sleep(200);
      assertEquals(List.of("a"), collector.signals());
      collector.subscription.request(1);
      collector.becomes(List.of("a", "b"));
      collector.subscription.request(2);
      collector.becomes(List.of("a", "b", "", "complete"));
    }
  }

  /** §3.17: no sum of demands is too large. */
  @Test
  void askingForEverythingTwiceIsAskingForEverything() throws Exception {
    try (ScriptedServer server = server(List.of(stream("[DONE]", "a", "b")));
        LastwordClient client = client(server)) {
      Collector collector = new Collector(0);
      client.chat().completions().publish(HI).subscribe(collector);
      collector.subscription.request(1);
      collector.subscription.request(Long.MAX_VALUE);
      collector.subscription.request(Long.MAX_VALUE);
      collector.becomes(List.of("a", "b", "", "complete"));
    }
  }

  @Test
  void aBrokenAnswerIsAnErrorAndNotComplete() throws Exception {
    try (ScriptedServer server = server(List.of(stream(Map.of("end", "truncate"), "a")));
        LastwordClient client = client(server)) {
      Collector collector = new Collector(Long.MAX_VALUE);
      client.chat().completions().publish(HI).subscribe(collector);
      collector.becomes(List.of("a", "error"));
      assertEquals(
          "a", assertInstanceOf(StreamIncompleteException.class, collector.error).partial().text());
    }
  }

  @Test
  void cancellingClosesTheSocketAndSaysNothingMore() throws Exception {
    try (ScriptedServer server = server(List.of(stream(silence(), "a")));
        LastwordClient client = client(server)) {
      Collector collector = new Collector(Long.MAX_VALUE);
      client.chat().completions().publish(HI).subscribe(collector);
      collector.becomes(List.of("a"));
      collector.subscription.cancel();
      assertTrue(ScriptedServer.becomes(() -> server.requests().get(0).disconnectedAt != 0, 2000));
      Thread.sleep(100);
      assertEquals(List.of("a"), collector.signals());
    }
  }

  @Test
  void askingForNothingIsAnErrorByTheRules() throws Exception {
    try (ScriptedServer server = server(List.of());
        LastwordClient client = client(server)) {
      Collector collector = new Collector(0);
      client.chat().completions().publish(HI).subscribe(collector);
      collector.subscription.request(0);
      collector.becomes(List.of("error"));
      assertInstanceOf(IllegalArgumentException.class, collector.error);
      assertEquals(0, server.requests().size());
    }
  }

  @Test
  void aRequestThatCannotBeSentFailsItsSubscriber() throws Exception {
    try (ScriptedServer server = server(List.of());
        LastwordClient client = client(server)) {
      Collector collector = new Collector(1);
      client
          .chat()
          .completions()
          .publish(ChatRequest.builder().user("hi").set("x", new Object()).build())
          .subscribe(collector);
      collector.becomes(List.of("error"));
      assertInstanceOf(InvalidRequestException.class, collector.error);
    }
  }
}
