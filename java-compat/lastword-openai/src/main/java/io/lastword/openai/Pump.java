package io.lastword.openai;

import com.openai.core.http.HttpResponse;
import io.lastword.core.Limits;
import java.io.ByteArrayOutputStream;
import java.io.InputStream;
import java.util.Arrays;
import java.util.concurrent.ArrayBlockingQueue;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.CancellationException;
import java.util.concurrent.TimeUnit;
import java.util.function.Consumer;
import org.jspecify.annotations.Nullable;

/**
 * Reads a body on a daemon thread, so that whoever waits for a piece can be woken by time, or by
 * another thread. One thread takes the pieces; any may close it.
 */
final class Pump {

  /** A piece of the body, its end, or how it broke. */
  record Piece(byte[] bytes, boolean end, @Nullable Throwable broken) {}

  /** What came of a body, and how it broke if it did; late: there was no time for its end. */
  record Whole(byte[] bytes, @Nullable Throwable broken, boolean late) {}

  private static final int SIZE = 16 * 1024;
  private static final Piece END = new Piece(new byte[0], true, null);
  private static final Piece CLOSED =
      new Piece(new byte[0], true, new CancellationException(LastwordHttpClient.CLOSED));

  // the server is not read faster than the caller reads
  private final BlockingQueue<Piece> pieces = new ArrayBlockingQueue<>(4);
  private final HttpResponse response;
  private final InputStream body;
  private final Consumer<Pump> onEnd;
  private volatile boolean closed;
  private boolean ended; // of the thread that takes the pieces

  /** {@code onEnd} is told once nothing more is read. */
  Pump(HttpResponse response, Consumer<Pump> onEnd) {
    this.response = response;
    this.body = response.body();
    this.onEnd = onEnd;
  }

  void start() {
    DaemonThreads.READ.execute(this::run);
  }

  /**
   * The next piece; null after so many nanoseconds without one; a cancellation once it is closed.
   */
  @Nullable Piece next(long nanos) throws InterruptedException {
    Piece piece = pieces.poll(nanos, TimeUnit.NANOSECONDS);
    ended |= piece != null && piece.end();
    return closed ? CLOSED : piece;
  }

  /** All of it, or the first {@code limit} bytes and a little more, in so many nanoseconds. */
  Whole all(int limit, long nanos) throws InterruptedException {
    ByteArrayOutputStream bytes = new ByteArrayOutputStream();
    long began = System.nanoTime();
    try {
      while (bytes.size() <= limit) {
        Piece piece = next(nanos - (System.nanoTime() - began));
        if (piece == null || piece.end()) {
          return new Whole(
              bytes.toByteArray(), piece == null ? null : piece.broken(), piece == null);
        }
        bytes.writeBytes(piece.bytes());
      }
      return new Whole(bytes.toByteArray(), null, false);
    } finally {
      close();
    }
  }

  /**
   * What follows the terminal event is read, within limits, so that the connection can be used
   * again (STR-9).
   */
  void drain() {
    if (!ended) {
      try {
        all(Limits.DRAIN, Limits.DRAIN_TIME.toNanos());
      } catch (InterruptedException e) {
        Thread.currentThread().interrupt();
      }
    }
    close();
  }

  /**
   * Wake whoever waits, and close the response: at once if any thread may, else as soon as the
   * thread that reads is out.
   */
  void close() {
    closed = true;
    pieces.clear();
    pieces.offer(END);
    if (body instanceof RawBody) {
      response.close();
    }
  }

  private void run() {
    try {
      pieces.put(pour());
    } catch (InterruptedException e) { // by nobody
      Thread.currentThread().interrupt();
    } finally {
      onEnd.accept(this);
    }
  }

  private Piece pour() {
    byte[] buffer = new byte[SIZE];
    try (response) {
      for (int size = body.read(buffer); size >= 0 && !closed; size = body.read(buffer)) {
        pieces.put(new Piece(Arrays.copyOf(buffer, size), false, null));
      }
      return END;
    } catch (Throwable e) { // whatever it is, somebody waits to hear of it
      return new Piece(new byte[0], true, e);
    }
  }
}
