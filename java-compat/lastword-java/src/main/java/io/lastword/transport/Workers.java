package io.lastword.transport;

import java.lang.reflect.Method;
import java.util.concurrent.Executor;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.ThreadFactory;
import java.util.concurrent.atomic.AtomicInteger;
import org.jspecify.annotations.Nullable;

/**
 * The threads of asynchronous calls: virtual ones where the JDK has them (21 and newer), else
 * daemons that end after a minute without work. None is made before it is needed, and none keeps a
 * process alive.
 */
final class Workers implements Executor {

  private @Nullable ExecutorService threads;

  @Override
  public synchronized void execute(Runnable work) {
    if (threads == null) {
      threads = make();
    }
    threads.execute(work);
  }

  synchronized void close() {
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
