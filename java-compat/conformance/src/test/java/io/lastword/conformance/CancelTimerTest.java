package io.lastword.conformance;

import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.util.Map;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/** What a caller who cancels leaves behind. */
@Timeout(30)
class CancelTimerTest {

  @Test
  void anInterruptThatIsOnItsWayAtTheEndIsNotTheNextCalls() throws Exception {
    Thread caller = Thread.currentThread();
    CountDownLatch begun = new CountDownLatch(1);
    CountDownLatch interrupted = new CountDownLatch(1);
    Runnable slow =
        () -> {
          begun.countDown();
          pause();
          caller.interrupt();
          interrupted.countDown();
        };
    try (CancelTimer timer = new CancelTimer(cancelledAfter(1), slow)) {
      assertTrue(begun.await(10, TimeUnit.SECONDS));
    }
    // Throws at an interrupt that is still to come.
    assertTrue(interrupted.await(10, TimeUnit.SECONDS));
    assertFalse(Thread.interrupted());
  }

  /** So long that the end of the call comes first. */
  private static void pause() {
    try {
      Thread.sleep(300);
    } catch (InterruptedException e) {
      throw new IllegalStateException(e);
    }
  }

  private static Case cancelledAfter(int millis) {
    Map<String, Object> call = Map.of("cancel", Map.of("after_ms", millis));
    return new Case(Map.of("base_url", "http://127.0.0.1:9/v1", "api_key", "k", "call", call));
  }
}
