package io.lastword.transport;

import io.lastword.Codes;
import io.lastword.Outcome;
import io.lastword.ToolCall;
import io.lastword.core.Classifier;
import io.lastword.core.ServerSentEvent;
import io.lastword.core.SseDecoder;
import io.lastword.core.StreamTracker.WireEnd;
import io.lastword.errors.LastwordException;
import java.io.IOException;
import java.util.Collections;
import java.util.Iterator;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.concurrent.locks.ReentrantLock;
import org.jspecify.annotations.Nullable;

/**
 * A stream being read: chunks, then exactly one outcome.
 *
 * <p>One thread reads; {@link #close} may be called from any. Whoever closes while another thread
 * waits leaves the ending to that thread.
 */
public final class StreamReading {

  private final Call call;
  private final Wire wire;
  private final Runnable onEnd;
  private final ReentrantLock lock = new ReentrantLock();
  private SseDecoder decoder = new SseDecoder();
  private Iterator<ServerSentEvent> events = Collections.emptyIterator();
  private @Nullable Exchange exchange;
  private boolean inside; // under the lock, like the next
  private boolean closed;
  private volatile @Nullable Outcome outcome;
  private long handed = System.nanoTime(); // when the caller last got something
  private long callersNanos; // what the caller took since the last wait

  /** A stream that has not been opened; {@code onEnd} is run once it has its outcome. */
  public StreamReading(Transport transport, String baseUrl, Call call, Runnable onEnd) {
    this.call = call;
    this.wire = new Wire(transport, baseUrl, call);
    this.onEnd = onEnd;
  }

  /** What each choice has said so far, by its index. */
  public Map<Integer, String> texts() {
    return call.tracker().texts();
  }

  /** The tool calls of the choices that have finished. */
  public List<ToolCall> toolCalls() {
    return call.tracker().toolCalls();
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
          call.retrying(
              () -> {
                begin();
                return true;
              });
          return null;
        });
    handed = System.nanoTime();
  }

  /**
   * The next chunk; null once the answer is complete.
   *
   * @throws LastwordException where the iteration would otherwise end without the answer being
   *     whole; the same each time
   * @throws IllegalStateException if another thread is reading
   */
  public @Nullable Map<String, @Nullable Object> next() {
    Outcome ended = outcome;
    if (ended == null) {
      Map<String, @Nullable Object> chunk =
          inside(
              () -> {
                callersNanos += System.nanoTime() - handed;
                Map<String, @Nullable Object> read = attempted();
                if (read == null) {
                  end(null);
                }
                return read;
              });
      if (chunk != null) {
        call.deliver();
        handed = System.nanoTime();
        return chunk;
      }
      ended = outcome;
    }
    Objects.requireNonNull(ended, "a step without a chunk left no outcome").orThrow();
    return null;
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

  /** Until something has been handed over, a failure may be followed by another attempt. */
  private @Nullable Map<String, @Nullable Object> attempted() throws Failure {
    return call.delivered()
        ? read()
        : call.<@Nullable Map<String, @Nullable Object>>retrying(this::first);
  }

  private @Nullable Map<String, @Nullable Object> first() throws Failure {
    if (exchange == null) {
      begin();
    }
    return read();
  }

  private void begin() throws Failure {
    decoder = new SseDecoder();
    events = Collections.emptyIterator();
    Exchange begun = wire.send();
    Call.Answer answer = call.answer();
    if (!Wire.isStream(answer)) {
      byte[] body = wire.read(begun);
      Failure refusal = call.refusal(answer, body);
      String type = answer.headers().getOrDefault("content-type", "");
      String what =
          "HTTP "
              + answer.status()
              + " with the content type '"
              + type
              + "' where text/event-stream was expected";
      throw refusal != null ? refusal : call.malformed(what, body);
    }
    exchange = begun;
  }

  private @Nullable Map<String, @Nullable Object> read() throws Failure {
    while (true) {
      Map<String, @Nullable Object> chunk = take();
      if (chunk != null) {
        return chunk;
      }
      if (call.tracker().terminal()) {
        finish(false);
        return null;
      }
      byte[] piece = receive();
      if (piece == null) {
        finish(decoder.pending());
        return null;
      }
      events = decoder.feed(piece).iterator();
    }
  }

  /**
   * The next chunk of the events at hand; null if they are used up or the terminal event was among
   * them.
   */
  private @Nullable Map<String, @Nullable Object> take() {
    while (events.hasNext()) {
      Map<String, @Nullable Object> chunk = call.tracker().accept(events.next());
      if (chunk != null) {
        return chunk;
      }
      if (call.tracker().terminal()) {
        return null;
      }
    }
    if (decoder.tooLarge()) {
      String message =
          "an event of the stream is larger than " + SseDecoder.MAX_EVENT_BYTES + " bytes";
      call.tracker()
          .reject(
              Classifier.error(Codes.MALFORMED_RESPONSE, message)
                  .details(Map.of("max_event_bytes", SseDecoder.MAX_EVENT_BYTES))
                  .build());
    }
    return null;
  }

  private byte @Nullable [] receive() throws Failure {
    Exchange current = exchange;
    if (current == null) {
      throw closedHere();
    }
    watch();
    try {
      return current.read();
    } catch (Stopped e) {
      drop();
      throw call.stopped();
    } catch (IOException e) {
      drop();
      throw call.broken(e);
    }
  }

  /**
   * The idle timer starts again after content. The caller's own time is not counted; that of
   * reading what the server sends is, or a flood of comments would hold the timers up.
   */
  private void watch() {
    if (call.tracker().progressed()) {
      call.tracker().resetProgress();
      call.guard().deadline().progress(System.nanoTime());
    } else {
      call.guard().deadline().exclude(callersNanos);
    }
    callersNanos = 0;
  }

  /** The terminal event came, or the body ended as its framing says. */
  private void finish(boolean pending) throws Failure {
    Failure failure = call.ended(WireEnd.COMPLETE, pending);
    Exchange current = exchange;
    exchange = null;
    if (current != null) {
      wire.drain(current);
    }
    if (failure != null) {
      throw failure;
    }
  }

  private Failure closedHere() {
    return call.guard().interrupted()
        ? call.stopped()
        : call.cancelled("the stream was closed before it ended");
  }

  private void drop() {
    Exchange current = exchange;
    exchange = null;
    if (current != null) {
      wire.letGo(current);
    }
  }

  /** Fix the outcome, once. */
  private void end(@Nullable Failure failure) {
    lock.lock();
    try {
      if (outcome == null) {
        outcome = failure == null ? call.completed(Map.of()) : Outcome.of(call.thrown(failure));
        drop();
        onEnd.run();
      }
    } finally {
      lock.unlock();
    }
  }
}
