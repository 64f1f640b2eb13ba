package io.lastword.conformance;

import java.util.Timer;
import java.util.TimerTask;
import org.jspecify.annotations.Nullable;

/** A caller who cancels from outside while the call runs, if its case says so. */
public final class CancelTimer implements AutoCloseable {

  private final @Nullable Timer timer;
  private boolean over;

  public CancelTimer(Case given, Runnable cancel) {
    timer = given.cancelAfterMillis() > 0 ? new Timer(true) : null;
    if (timer != null) {
      timer.schedule(task(cancel), given.cancelAfterMillis());
    }
  }

  private TimerTask task(Runnable cancel) {
    return new TimerTask() {
      @Override
      public void run() {
        synchronized (CancelTimer.this) {
          if (!over) {
            cancel.run();
          }
        }
      }
    };
  }

  /**
   * The call has ended, and is cancelled no more; one who is cancelling it is waited for, so that
   * an interrupt that came too late is not the next call's.
   */
  @Override
  public void close() {
    if (timer == null) {
      return;
    }
    timer.cancel();
    synchronized (this) {
      over = true;
    }
    Thread.interrupted();
  }
}
