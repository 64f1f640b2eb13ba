package io.lastword.transport;

import io.lastword.errors.LastwordException;
import java.io.IOException;
import java.util.Map;
import org.jspecify.annotations.Nullable;

/**
 * An answer whose body nobody has looked at: for those who bring their own reader. One thread
 * reads, any may close.
 */
public final class RawAnswer implements AutoCloseable {

  private final Call call;
  private final Wire wire;
  private final Exchange exchange;
  private final Runnable onEnd;

  RawAnswer(Call call, Wire wire, Exchange exchange, Runnable onEnd) {
    this.call = call;
    this.wire = wire;
    this.exchange = exchange;
    this.onEnd = onEnd;
  }

  /** The HTTP status. */
  public int status() {
    return call.answer().status();
  }

  /** By lower-case names. */
  public Map<String, String> headers() {
    return call.answer().headers();
  }

  /**
   * Wait for the next piece of the body; null at its end.
   *
   * @throws LastwordException if it broke off, a timer fired, or it was closed
   */
  public byte @Nullable [] read() {
    try {
      byte[] piece = exchange.read();
      if (piece == null) {
        finish();
      }
      return piece;
    } catch (Stopped e) {
      finish();
      throw call.thrown(call.stopped());
    } catch (IOException e) {
      finish();
      throw call.thrown(call.broken(e));
    }
  }

  /**
   * Close the connection at once, unless the body has been read to its end; who waits for it gets
   * {@code CancelledException}.
   */
  @Override
  public void close() {
    call.guard().cancel();
    finish();
  }

  private void finish() {
    wire.letGo(exchange);
    onEnd.run();
  }
}
