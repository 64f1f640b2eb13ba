package io.lastword.conformance;

import java.util.Timer;
import java.util.TimerTask;

/** A caller who cancels from outside while the call runs, if its case says so. */
public final class CancelTimer implements AutoCloseable {

  private final Timer timer = new Timer(true);

  public CancelTimer(Case given, Runnable cancel) {
    if (given.cancelAfterMillis() > 0) {
      TimerTask task =
          new TimerTask() {
            @Override
            public void run() {
              cancel.run();
            }
          };
      timer.schedule(task, given.cancelAfterMillis());
    }
  }

  /** The call has ended; an interrupt that came too late is not the next one's. */
  @Override
  public void close() {
    timer.cancel();
    Thread.interrupted();
  }
}
