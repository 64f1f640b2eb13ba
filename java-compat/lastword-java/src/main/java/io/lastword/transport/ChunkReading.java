package io.lastword.transport;

import io.lastword.core.ChunkDecoder;
import io.lastword.core.StreamTracker.WireEnd;
import java.io.IOException;
import java.util.Map;
import org.jspecify.annotations.Nullable;

/**
 * From the pieces of a body to chunks, over the attempts that it takes. For one thread at a time.
 */
final class ChunkReading {

  private final Call call;
  private final Wire wire;
  private ChunkDecoder decoder;
  private @Nullable Exchange exchange;

  ChunkReading(Call call, Wire wire) {
    this.call = call;
    this.wire = wire;
    this.decoder = new ChunkDecoder(call.tracker());
  }

  /** Send the request and wait for the head of the answer, again if need be. */
  void open() throws Failure {
    call.retrying(
        () -> {
          begin();
          return true;
        });
    call.guard().deadline().handed(System.nanoTime());
  }

  /**
   * The next chunk; null once the answer is complete. Until something has been handed over, a
   * failure may be followed by another attempt.
   */
  @Nullable Map<String, @Nullable Object> next() throws Failure {
    call.guard().deadline().asked(System.nanoTime());
    Map<String, @Nullable Object> chunk =
        call.delivered()
            ? read()
            : call.<@Nullable Map<String, @Nullable Object>>retrying(this::first);
    if (chunk != null) {
      call.deliver();
      call.guard().deadline().handed(System.nanoTime());
    }
    return chunk;
  }

  /** Close the connection, unless the body has been read to its end. */
  void drop() {
    Exchange current = exchange;
    exchange = null;
    if (current != null) {
      wire.letGo(current);
    }
  }

  private @Nullable Map<String, @Nullable Object> first() throws Failure {
    if (exchange == null) {
      begin();
    }
    return read();
  }

  private void begin() throws Failure {
    Exchange begun = wire.send();
    if (!call.answer().isStream()) {
      byte[] body = wire.read(begun);
      Failure refusal = call.refusal(body);
      throw refusal != null ? refusal : new Failure(call.answer().noStream(body), null);
    }
    decoder = new ChunkDecoder(call.tracker());
    exchange = begun;
  }

  private @Nullable Map<String, @Nullable Object> read() throws Failure {
    while (true) {
      ChunkDecoder.Decoded decoded = decoder.next();
      if (decoded != null) {
        return decoded.chunk();
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
      decoder.feed(piece);
    }
  }

  private byte @Nullable [] receive() throws Failure {
    Exchange current = exchange;
    if (current == null) {
      throw call.cancelled("the stream was closed before it ended");
    }
    call.guard().deadline().waits(call.tracker(), System.nanoTime());
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
}
