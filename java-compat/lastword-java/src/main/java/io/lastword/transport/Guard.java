package io.lastword.transport;

import io.lastword.Timer;
import io.lastword.core.Deadline;
import java.time.Duration;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.TimeUnit;
import org.jspecify.annotations.Nullable;

/**
 * The one place where a call waits: for the next signal, no longer than its timers allow, until
 * somebody cancels.
 *
 * <p>All timers run in the waiting thread, so there is no timer thread. {@link #cancel} may be
 * called from any thread.
 */
final class Guard {

  private final Deadline deadline;
  private final BlockingQueue<Signal> signals = new LinkedBlockingQueue<>();
  private volatile boolean cancelled;
  private volatile boolean interrupted;
  private volatile @Nullable Exchange exchange;
  private @Nullable Timer fired;
  private long drainUntil; // in nanoseconds of System.nanoTime; meant if draining
  private boolean draining;

  /** The guard of a call with these timers. */
  Guard(Deadline deadline) {
    this.deadline = deadline;
  }

  Deadline deadline() {
    return deadline;
  }

  /** Whether the call was ended from this side. */
  boolean cancelled() {
    return cancelled;
  }

  /** Whether that was by interrupting the thread that waited. */
  boolean interrupted() {
    return interrupted;
  }

  /** The timer that ended the attempt. */
  @Nullable Timer fired() {
    return fired;
  }

  /** The connection could not be opened in the time that the JDK's client was given. */
  void connectTimerFired() {
    fired = Timer.CONNECT;
  }

  /** A new attempt begins. */
  void attempt() {
    fired = null;
    draining = false;
    deadline.attempt(System.nanoTime());
  }

  /** From now on {@link #cancel} ends this exchange. */
  void hold(Exchange current) {
    exchange = current;
    if (cancelled) {
      current.close();
    }
  }

  /** The exchange is over; its connection may serve another call, and no cancel of ours. */
  void release() {
    exchange = null;
  }

  /**
   * The outcome is fixed; what is still read only explains it or saves the connection, and no timer
   * fires before {@link #resume}.
   */
  void drain(Duration atMost) {
    long now = System.nanoTime();
    draining = true;
    drainUntil = now + Math.max(0, Math.min(atMost.toNanos(), deadline.left(now)));
  }

  /** It goes on elsewhere. */
  void resume() {
    draining = false;
  }

  /**
   * End the call: wake whoever waits, and close the connection so that the server sees it at once.
   */
  void cancel() {
    cancelled = true;
    signals.add(new Signal.Woken());
    Exchange current = exchange;
    if (current != null) {
      current.close();
    }
  }

  void tell(Signal signal) {
    signals.add(signal);
  }

  /** The next signal of any exchange of this call. */
  Signal await() throws Stopped {
    while (true) {
      long nanos = allowed();
      Signal signal;
      try {
        signal =
            nanos == Deadline.NEVER ? signals.take() : signals.poll(nanos, TimeUnit.NANOSECONDS);
      } catch (InterruptedException e) {
        interrupt();
        throw new Stopped();
      }
      if (cancelled) {
        throw new Stopped();
      }
      if (signal != null && !(signal instanceof Signal.Woken)) {
        return signal;
      }
    }
  }

  /** Wait between attempts; a cancellation ends it. */
  void sleep(Duration delay) {
    long until = System.nanoTime() + delay.toNanos();
    try {
      for (long left = delay.toNanos(); left > 0 && !cancelled; left = until - System.nanoTime()) {
        signals.poll(left, TimeUnit.NANOSECONDS); // a Woken, or what is left of the attempt before
      }
    } catch (InterruptedException e) {
      interrupt();
    }
  }

  /** How long the next wait may last, in nanoseconds; at least one. */
  long allowed() throws Stopped {
    if (Thread.currentThread().isInterrupted()) {
      interrupt();
    }
    if (cancelled) {
      throw new Stopped();
    }
    long now = System.nanoTime();
    if (draining) {
      if (drainUntil - now <= 0) {
        throw new Stopped();
      }
      return drainUntil - now;
    }
    Deadline.Next next = deadline.next(now);
    if (next.nanos() <= 0) {
      fired = next.timer();
      throw new Stopped();
    }
    return next.nanos();
  }

  private void interrupt() {
    Thread.currentThread().interrupt();
    interrupted = true;
    cancel();
  }
}
