package io.lastword.openai;

import io.lastword.Codes;
import io.lastword.Timeouts;
import io.lastword.core.ChunkDecoder;
import io.lastword.core.Classifier;
import io.lastword.core.Deadline;
import io.lastword.core.Json;
import io.lastword.core.ResponseHead;
import io.lastword.core.ServerSentEvent;
import io.lastword.core.StreamTracker;
import io.lastword.core.StreamTracker.WireEnd;
import io.lastword.errors.ErrorInfo;
import io.lastword.errors.LastwordException;
import io.lastword.transport.JdkErrors;
import java.io.InputStream;
import java.nio.charset.StandardCharsets;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import org.jspecify.annotations.Nullable;

/**
 * A stream's body as openai-java may read it: the server's chunks, and {@code [DONE]} only behind a
 * whole answer. Where it would end otherwise, {@code read} throws {@link LastwordOpenAIException}.
 */
final class CheckedStream extends InputStream {

  private static final byte[] DONE = "data: [DONE]\n\n".getBytes(StandardCharsets.UTF_8);

  private final StreamTracker tracker;
  private final ChunkDecoder decoder;
  private final Timeouts timeouts;
  private final String requestId;
  private final Pump pump;
  private final Deadline deadline;
  private byte[] ready = new byte[0];
  private int at;
  private boolean over;
  private @Nullable ErrorInfo failure;
  private volatile boolean closed;

  CheckedStream(Asked asked, Pump pump, ResponseHead head, Timeouts timeouts, long began) {
    this.tracker = new StreamTracker(asked.choices(), null);
    this.decoder = new ChunkDecoder(tracker);
    this.timeouts = timeouts.withConnect(null).withTotal(null);
    String theirs = Classifier.requestIdOf(head.headers());
    this.requestId = theirs != null ? theirs : asked.requestId();
    this.deadline = new Deadline(this.timeouts, true, began);
    this.pump = pump;
  }

  /** Wait for the first chunk, or for the end; what is wrong if none comes. */
  @Nullable ErrorInfo begin() {
    fill();
    deadline.handed(System.nanoTime());
    return failure;
  }

  @Override
  public int read() {
    byte[] one = new byte[1];
    return read(one, 0, 1) < 0 ? -1 : one[0] & 0xFF;
  }

  @Override
  public int read(byte[] target, int offset, int length) {
    if (length == 0) {
      return 0;
    }
    if (at == ready.length) {
      deadline.asked(System.nanoTime());
      if (!over) {
        fill();
      }
      ErrorInfo broken = failure;
      if (broken != null) {
        throw new LastwordOpenAIException(
            LastwordException.of(broken, tracker.partial(), List.of(), null));
      }
      if (at == ready.length) {
        return -1;
      }
      deadline.handed(System.nanoTime());
    }
    int size = Math.min(length, ready.length - at);
    System.arraycopy(ready, at, target, offset, size);
    at += size;
    return size;
  }

  @Override
  public void close() {
    closed = true;
    pump.close();
  }

  /**
   * Put the next chunk into {@code ready}, or {@code [DONE]}, or a failure into {@code failure}.
   */
  private void fill() {
    do {
      ChunkDecoder.Decoded decoded = decoder.next();
      if (decoded != null) {
        hand(decoded.chunk(), decoded.event());
        return;
      }
      if (tracker.terminal()) {
        end(WireEnd.COMPLETE, false);
        return;
      }
    } while (receive());
  }

  /** Wait for more; false if the stream has ended with that. */
  private boolean receive() {
    deadline.waits(tracker, System.nanoTime());
    Deadline.Next next = deadline.next(System.nanoTime());
    Pump.Piece piece;
    try {
      piece = next.nanos() <= 0 ? null : pump.next(next.nanos());
    } catch (InterruptedException e) {
      Thread.currentThread().interrupt();
      cancelled(AnswerCheck.INTERRUPTED);
      return false;
    }
    if (closed) {
      cancelled("the stream was closed before it ended");
    } else if (piece == null) {
      fail(Deadline.fired(next.timer(), timeouts));
    } else if (piece.broken() != null) {
      broken(piece.broken());
    } else if (piece.end()) {
      end(WireEnd.COMPLETE, decoder.pending());
    } else {
      decoder.feed(piece.bytes());
      return true;
    }
    return false;
  }

  private void broken(Throwable error) {
    ErrorInfo known = LastwordErrors.ofBody(error);
    if (known != null) {
      fail(known);
    } else {
      end(JdkErrors.wireEnd(error), false);
    }
  }

  private void cancelled(String why) {
    fail(Classifier.error(Codes.CANCELLED, why).build());
  }

  private void hand(Map<String, @Nullable Object> chunk, ServerSentEvent event) {
    String data = event.data();
    if (chunk.containsKey("error")) { // null or empty: openai-java takes it for an error
      Map<String, @Nullable Object> without = new LinkedHashMap<>(chunk);
      without.remove("error");
      data = Json.shown(without);
    }
    ready = ("data: " + data.replace("\n", "\ndata: ") + "\n\n").getBytes(StandardCharsets.UTF_8);
    at = 0;
  }

  private void end(WireEnd wire, boolean pending) {
    ErrorInfo info = tracker.end(wire, pending);
    pump.drain();
    if (info != null) {
      fail(info);
    } else {
      over = true;
      ready = DONE;
      at = 0;
    }
  }

  private void fail(ErrorInfo info) {
    pump.close(); // a caller that reads the raw response may never close it
    over = true;
    ready = new byte[0];
    at = 0;
    failure = info.requestId() != null ? info : info.toBuilder().requestId(requestId).build();
  }
}
