package io.lastword.openai;

import com.openai.core.http.HttpResponse;
import java.io.IOException;
import java.io.InputStream;
import java.util.Arrays;
import java.util.concurrent.ArrayBlockingQueue;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.TimeUnit;
import org.jspecify.annotations.Nullable;

/**
 * Reads a body on a daemon thread, so that whoever waits for a piece can be woken by time, or by
 * another thread.
 */
final class Pump {

  /** A piece of the body, its end, or how it broke. */
  record Piece(byte[] bytes, boolean end, @Nullable IOException broken) {}

  private static final int SIZE = 16 * 1024;
  private static final int MAX_DRAIN = 64 * 1024;
  private static final long DRAIN_MILLIS = 100; // STR-9

  private final BlockingQueue<Piece> pieces =
      new ArrayBlockingQueue<>(4); // the server is not read faster than the caller reads
  private final HttpResponse response;
  private final InputStream body;
  private volatile boolean closed;
  private boolean ended; // of the thread that takes the pieces

  Pump(HttpResponse response) {
    this.response = response;
    this.body = response.body();
    Thread thread = new Thread(this::run, "lastword-openai-stream");
    thread.setDaemon(true);
    thread.start();
  }

  /** The next piece; null after so many nanoseconds without one, or once it is closed. */
  @Nullable Piece next(long nanos) throws InterruptedException {
    Piece piece = pieces.poll(nanos, TimeUnit.NANOSECONDS);
    ended |= piece != null && piece.end();
    return closed ? null : piece;
  }

  /**
   * What follows the terminal event is read, within limits, so that the connection can be used
   * again.
   */
  void drain() {
    long until = System.nanoTime() + TimeUnit.MILLISECONDS.toNanos(DRAIN_MILLIS);
    int size = 0;
    try {
      while (size <= MAX_DRAIN && !ended) {
        Piece piece = next(until - System.nanoTime());
        if (piece == null) {
          break;
        }
        size += piece.bytes().length;
      }
    } catch (InterruptedException e) {
      Thread.currentThread().interrupt();
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
    pieces.offer(new Piece(new byte[0], true, null));
    if (body instanceof RawBody) {
      response.close();
    }
  }

  private void run() {
    byte[] buffer = new byte[SIZE];
    try (response) {
      for (int size = body.read(buffer); size >= 0 && !closed; size = body.read(buffer)) {
        put(new Piece(Arrays.copyOf(buffer, size), false, null));
      }
      put(new Piece(new byte[0], true, null));
    } catch (IOException e) {
      put(new Piece(new byte[0], true, e));
    } catch (RuntimeException e) { // a client that ends a body in its own way
      put(new Piece(new byte[0], true, new IOException(e)));
    }
  }

  private void put(Piece piece) {
    try {
      while (!closed && !pieces.offer(piece, 100, TimeUnit.MILLISECONDS)) {
        // the caller takes its time
      }
    } catch (InterruptedException e) {
      Thread.currentThread().interrupt();
    }
  }
}
