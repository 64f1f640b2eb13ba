package io.lastword.transport;

import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.RejectedExecutionException;
import java.util.concurrent.atomic.AtomicInteger;
import org.jspecify.annotations.Nullable;

/**
 * The threads that requests are sent and asynchronous calls are made on: daemons that end after a
 * minute without work, none made before it is needed. Not virtual ones: like the common pool's,
 * their carriers are everybody's, and who keeps those busy would keep a request from being sent.
 */
final class Workers {

  private @Nullable ExecutorService threads;
  private boolean closed;

  /**
   * Begin {@code work} on a thread of its own, which {@code cancel(true)} of the result interrupts.
   *
   * @throws RejectedExecutionException once closed
   */
  synchronized Future<?> start(Runnable work) {
    if (closed) {
      throw new RejectedExecutionException("the client is closed");
    }
    if (threads == null) {
      threads = make();
    }
    return threads.submit(work);
  }

  synchronized void close() {
    closed = true;
    if (threads != null) {
      threads.shutdown();
    }
  }

  private static ExecutorService make() {
    AtomicInteger number = new AtomicInteger();
    return Executors.newCachedThreadPool(
        work -> {
          Thread thread = new Thread(work, "lastword-" + number.incrementAndGet());
          thread.setDaemon(true);
          return thread;
        });
  }
}
