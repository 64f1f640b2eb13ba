package io.lastword.transport;

import io.lastword.Outcome;
import io.lastword.ToolCall;
import io.lastword.core.StreamTracker;
import io.lastword.errors.LastwordException;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.concurrent.locks.ReentrantLock;
import org.jspecify.annotations.Nullable;

/**
 * A stream being read: chunks, then exactly one outcome.
 *
 * <p>One thread reads; everything else may be called from any. Whoever closes while another thread
 * waits leaves the ending to that thread.
 */
public final class StreamReading {

  private final Call call;
  private final ChunkReading chunks;
  private final Runnable onEnd;
  private final ReentrantLock lock = new ReentrantLock();
  private boolean inside; // under the lock, like the next
  private boolean closed;
  private volatile @Nullable Outcome outcome;

  /** A stream that has not been opened; {@code onEnd} is run once it has its outcome. */
  StreamReading(Transport transport, String baseUrl, Call call, Runnable onEnd) {
    this.call = call;
    this.chunks = new ChunkReading(call, new Wire(transport, baseUrl, call));
    this.onEnd = onEnd;
  }

  /** What each choice has said so far, by its index. */
  public Map<Integer, String> texts() {
    StreamTracker tracker = call.tracker();
    synchronized (tracker) {
      return tracker.texts();
    }
  }

  /** The tool calls of the choices that have finished. */
  public List<ToolCall> toolCalls() {
    StreamTracker tracker = call.tracker();
    synchronized (tracker) {
      return tracker.toolCalls();
    }
  }

  /** The server's id of this request, else the one that was sent. */
  public String requestId() {
    return call.requestId();
  }

  /** The last word; null while there is none. */
  public @Nullable Outcome outcome() {
    return outcome;
  }

  /**
   * Send the request and wait for the head of the answer, over as many attempts as the policy
   * allows.
   */
  public void open() {
    inside(
        () -> {
          chunks.open();
          return null;
        });
  }

  /**
   * The next chunk; null once the answer is complete.
   *
   * @throws LastwordException where the iteration would otherwise end without the answer being
   *     whole; the same each time
   * @throws IllegalStateException if another thread is reading
   */
  public @Nullable Map<String, @Nullable Object> next() {
    Map<String, @Nullable Object> chunk =
        inside(
            () -> {
              Map<String, @Nullable Object> read = chunks.next();
              if (read == null) {
                end(null);
              }
              return read;
            });
    if (chunk == null) {
      Objects.requireNonNull(outcome, "a step without a chunk left no outcome").orThrow();
    }
    return chunk;
  }

  /**
   * End the stream now, from any thread; a thread that waits for it gets {@code
   * CancelledException}.
   */
  public void close() {
    lock.lock();
    try {
      if (outcome == null) {
        closed = true;
        call.guard().cancel();
        if (!inside) { // else the thread inside wakes up and ends the stream
          end(closedHere());
        }
      }
    } finally {
      lock.unlock();
    }
  }

  /**
   * One thread at a time is inside, and whoever closes the stream meanwhile leaves its ending to
   * that one.
   */
  private @Nullable Map<String, @Nullable Object> inside(
      Call.Step<@Nullable Map<String, @Nullable Object>> step) {
    lock.lock();
    try {
      if (inside) {
        throw new IllegalStateException("the stream is being read already: one reader at a time");
      }
      if (outcome != null) {
        return null;
      }
      inside = true;
    } finally {
      lock.unlock();
    }
    try {
      return step.run();
    } catch (Failure failure) {
      end(failure);
      return null;
    } catch (RuntimeException | Error e) { // whatever it is, the socket must not outlive it
      end(call.cancelled("the stream was abandoned: " + e));
      throw e;
    } finally {
      lock.lock();
      try {
        inside = false;
        if (closed) {
          end(closedHere());
        }
      } finally {
        lock.unlock();
      }
    }
  }

  private Failure closedHere() {
    return call.guard().interrupted()
        ? call.stopped()
        : call.cancelled("the stream was closed before it ended");
  }

  /** Fix the outcome, once. */
  private void end(@Nullable Failure failure) {
    lock.lock();
    try {
      if (outcome == null) {
        outcome = failure == null ? call.completed(Map.of()) : Outcome.of(call.thrown(failure));
        chunks.drop();
        onEnd.run();
      }
    } finally {
      lock.unlock();
    }
  }
}
