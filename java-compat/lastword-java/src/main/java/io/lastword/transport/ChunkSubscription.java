package io.lastword.transport;

import io.lastword.errors.LastwordException;
import java.util.Map;
import java.util.Objects;
import java.util.concurrent.Flow;
import java.util.concurrent.RejectedExecutionException;
import java.util.function.Function;
import java.util.function.Supplier;
import org.jspecify.annotations.Nullable;

/**
 * A stream read as it is asked for (Reactive Streams 1.0.4, whose rules the comments name).
 *
 * <p>A worker reads while there is demand and leaves when there is none, so at most one thread is
 * inside at a time (§1.3).
 */
final class ChunkSubscription<T> implements Flow.Subscription {

  private final Flow.Subscriber<? super T> subscriber;
  private final Prepared request;
  private final Function<Prepared, StreamReading> begin;
  private final Function<Map<String, @Nullable Object>, T> build;
  private final Workers workers;
  private long demand; // under the lock of this, like the others
  private boolean working = true; // somebody is with the subscriber; first of all its onSubscribe
  // the call begins, and its timers run, with the first demand
  private @Nullable StreamReading reading;
  private boolean over; // the last signal has been given, or nobody wants one (§1.7, §3.12)
  private @Nullable IllegalArgumentException wrong;

  private ChunkSubscription(
      Flow.Subscriber<? super T> subscriber,
      Prepared request,
      Function<Prepared, StreamReading> begin,
      Function<Map<String, @Nullable Object>, T> build,
      Workers workers) {
    this.subscriber = subscriber;
    this.request = request;
    this.begin = begin;
    this.build = build;
    this.workers = workers;
  }

  /** §1.9: onSubscribe comes first, also where the call cannot be begun. */
  static <T> void begin(
      Flow.Subscriber<? super T> subscriber,
      Supplier<Prepared> request,
      Function<Prepared, StreamReading> begin,
      Function<Map<String, @Nullable Object>, T> build,
      Workers workers) {
    Objects.requireNonNull(subscriber, "subscriber");
    Prepared prepared;
    try {
      prepared = request.get();
    } catch (LastwordException e) {
      subscriber.onSubscribe(new Nothing());
      subscriber.onError(e);
      return;
    }
    ChunkSubscription<T> subscription =
        new ChunkSubscription<>(subscriber, prepared, begin, build, workers);
    subscriber.onSubscribe(subscription);
    subscription.start();
  }

  /** §1.3: what is asked for in onSubscribe comes once that has returned. */
  private void start() {
    synchronized (this) {
      working = demand > 0 || wrong != null;
      if (!working) {
        return;
      }
    }
    run();
  }

  @Override
  public void request(long n) {
    synchronized (this) {
      if (over) {
        return;
      }
      if (n <= 0) { // §3.9
        wrong =
            new IllegalArgumentException(
                "request(" + n + "): ask for 1 or more (Reactive Streams §3.9)");
      } else {
        demand = demand + n < 0 ? Long.MAX_VALUE : demand + n; // §3.17
      }
      if (working) {
        if (wrong != null) {
          end();
        }
        return;
      }
      working = true;
    }
    run();
  }

  private void run() {
    try {
      workers.start(this::work);
    } catch (RejectedExecutionException e) { // the client is closed, and begin says so
      work();
    }
  }

  @Override
  public void cancel() {
    synchronized (this) {
      over = true;
    }
    end();
  }

  private void end() {
    StreamReading begun;
    synchronized (this) {
      begun = reading;
    }
    if (begun != null) {
      begun.close();
    }
  }

  private void work() {
    try {
      while (wanted()) {
        Map<String, @Nullable Object> chunk = read();
        if (chunk == null) {
          if (last()) {
            subscriber.onComplete();
          }
          return;
        }
        subscriber.onNext(build.apply(chunk));
      }
    } catch (Throwable e) {
      end();
      if (last()) {
        Throwable reason = wrong;
        subscriber.onError(reason != null ? reason : e);
      }
    }
  }

  private @Nullable Map<String, @Nullable Object> read() {
    StreamReading begun;
    synchronized (this) {
      begun = reading;
    }
    if (begun == null) {
      begun = begin.apply(request);
      boolean late;
      synchronized (this) {
        reading = begun;
        late = over || wrong != null;
      }
      if (late) {
        begun.close();
      }
      begun.open();
    }
    return begun.next();
  }

  /** Whether to go on; if not, the next request starts another worker. */
  private synchronized boolean wanted() {
    if (wrong != null && !over) {
      throw wrong;
    }
    if (over || demand == 0) {
      working = false;
      return false;
    }
    if (demand != Long.MAX_VALUE) {
      demand--;
    }
    return true;
  }

  private synchronized boolean last() {
    boolean first = !over;
    over = true;
    working = false;
    return first;
  }

  /** The subscription of a stream that never was. */
  private static final class Nothing implements Flow.Subscription {
    @Override
    public void request(long n) {}

    @Override
    public void cancel() {}
  }
}
