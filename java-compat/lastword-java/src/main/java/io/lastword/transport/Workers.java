package io.lastword.transport;

import java.lang.reflect.Method;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.RejectedExecutionException;
import java.util.concurrent.ThreadFactory;
import java.util.concurrent.atomic.AtomicInteger;
import org.jspecify.annotations.Nullable;

/**
 * The threads that requests are sent and asynchronous calls are made on: virtual ones where the JDK
 * has them (21 and newer), else daemons that end after a minute without work. None is made before
 * it is needed, and none keeps a process alive.
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
    try {
      Method virtual = Executors.class.getMethod("newVirtualThreadPerTaskExecutor");
      return (ExecutorService) virtual.invoke(null);
    } catch (ReflectiveOperationException e) {
      AtomicInteger number = new AtomicInteger();
      ThreadFactory daemons =
          work -> {
            Thread thread = new Thread(work, "lastword-" + number.incrementAndGet());
            thread.setDaemon(true);
            return thread;
          };
      return Executors.newCachedThreadPool(daemons);
    }
  }
}
