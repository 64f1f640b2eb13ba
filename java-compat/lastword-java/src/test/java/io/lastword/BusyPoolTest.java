package io.lastword;

import static io.lastword.Answers.answer;
import static io.lastword.Answers.server;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;

import io.lastword.errors.ConnectionFailedException;
import io.lastword.scripted.ChildJvm;
import io.lastword.scripted.ScriptedServer;
import java.lang.reflect.Method;
import java.net.InetAddress;
import java.net.ServerSocket;
import java.util.Collections;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.ForkJoinPool;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/**
 * The common pool is everybody's: no call depends on a free thread in it. In a process of its own,
 * for with two cores or fewer the JDK does without that pool.
 */
@Timeout(60)
class BusyPoolTest {

  private static final int THREADS = 3;

  @Test
  void nobodyWaitsForAThreadOfTheCommonPool() throws Exception {
    try (ScriptedServer server = server(Collections.nCopies(2 * THREADS, answer("Hi")))) {
      String parallelism = "-Djava.util.concurrent.ForkJoinPool.common.parallelism=" + THREADS;
      try (ChildJvm child = new ChildJvm(Child.class, List.of(parallelism), server.baseUrl())) {
        assertEquals("0", child.exit(40));
      }
    }
  }

  /** What the process runs. */
  static final class Child {
    public static void main(String[] arguments) throws Exception {
      assertEquals(THREADS, ForkJoinPool.getCommonPoolParallelism());
      callersInThePool(arguments[0]);
      strangersOnTheCarriers();
      strangersInThePool();
    }

    /** Who calls from the pool fills it with threads that wait. */
    private static void callersInThePool(String baseUrl) {
      try (LastwordClient client = LastwordClient.builder().baseUrl(baseUrl).build()) {
        List<CompletableFuture<Completed>> answers =
            Stream.generate(() -> client)
                .limit(2 * THREADS)
                .map(
                    each ->
                        CompletableFuture.supplyAsync(
                            () -> each.chat().completions().create(Answers.HI)))
                .toList();
        answers.forEach(each -> assertEquals("Hi", each.join().text()));
      }
    }

    /** From JDK 21 on: virtual threads that never wait keep every carrier. */
    private static void strangersOnTheCarriers() throws Exception {
      AtomicBoolean end = new AtomicBoolean();
      try {
        Method start = Thread.class.getMethod("startVirtualThread", Runnable.class);
        for (int i = 0; i < Runtime.getRuntime().availableProcessors(); i++) {
          Runnable spin =
              () -> {
                while (!end.get()) {
                  Thread.onSpinWait();
                }
              };
          start.invoke(null, spin);
        }
      } catch (NoSuchMethodException e) {
        return; // an older JDK, which has none
      }
      nobodyThere();
      end.set(true);
    }

    /** A connection that fails is told of while others keep the pool busy. */
    private static void strangersInThePool() throws Exception {
      CountDownLatch end = new CountDownLatch(1);
      for (int i = 0; i < 2 * THREADS; i++) {
        ForkJoinPool.commonPool().submit(() -> end.await(1, TimeUnit.MINUTES));
      }
      nobodyThere();
    }

    private static void nobodyThere() throws Exception {
      int free;
      try (ServerSocket socket = new ServerSocket(0, 1, InetAddress.getLoopbackAddress())) {
        free = socket.getLocalPort();
      }
      try (LastwordClient client =
          LastwordClient.builder()
              .baseUrl("http://127.0.0.1:" + free + "/v1")
              .timeouts(Timeouts.defaults().withTotal(java.time.Duration.ofSeconds(20)))
              .retry(RetryPolicy.never())
              .build()) {
        assertThrows(
            ConnectionFailedException.class, () -> client.chat().completions().create(Answers.HI));
      }
    }
  }
}
