package io.lastword.transport;

import io.lastword.Codes;
import io.lastword.core.Classifier;
import io.lastword.core.ServerSentEvent;
import io.lastword.core.SseDecoder;
import io.lastword.core.StreamTracker;
import io.lastword.core.StreamTracker.WireEnd;
import java.io.IOException;
import java.util.Collections;
import java.util.Iterator;
import java.util.Map;
import org.jspecify.annotations.Nullable;

/**
 * From the pieces of a body to chunks, over the attempts that it takes. For one thread at a time.
 */
final class ChunkReading {

  private final Call call;
  private final Wire wire;
  private SseDecoder decoder = new SseDecoder();
  private Iterator<ServerSentEvent> events = Collections.emptyIterator();
  private @Nullable Exchange exchange;
  private long handed = System.nanoTime(); // when the caller last got something
  private long callersNanos; // what the caller took since the last wait

  ChunkReading(Call call, Wire wire) {
    this.call = call;
    this.wire = wire;
  }

  /** Send the request and wait for the head of the answer, again if need be. */
  void open() throws Failure {
    call.retrying(
        () -> {
          begin();
          return true;
        });
    handed = System.nanoTime();
  }

  /**
   * The next chunk; null once the answer is complete. Until something has been handed over, a
   * failure may be followed by another attempt.
   */
  @Nullable Map<String, @Nullable Object> next() throws Failure {
    callersNanos += System.nanoTime() - handed;
    Map<String, @Nullable Object> chunk =
        call.delivered()
            ? read()
            : call.<@Nullable Map<String, @Nullable Object>>retrying(this::first);
    if (chunk != null) {
      call.deliver();
      handed = System.nanoTime();
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
      Map<String, @Nullable Object> chunk = take(call.tracker());
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
  private @Nullable Map<String, @Nullable Object> take(StreamTracker tracker) {
    while (events.hasNext()) {
      Map<String, @Nullable Object> chunk;
      synchronized (tracker) { // others may ask what has been said
        chunk = tracker.accept(events.next());
      }
      if (chunk != null) {
        return chunk;
      }
      if (tracker.terminal()) {
        return null;
      }
    }
    if (decoder.tooLarge()) {
      String message =
          "an event of the stream is larger than " + SseDecoder.MAX_EVENT_BYTES + " bytes";
      tracker.reject(
          Classifier.error(Codes.MALFORMED_RESPONSE, message)
              .details(Map.of("max_event_bytes", SseDecoder.MAX_EVENT_BYTES))
              .build());
    }
    return null;
  }

  private byte @Nullable [] receive() throws Failure {
    Exchange current = exchange;
    if (current == null) {
      throw call.cancelled("the stream was closed before it ended");
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
}
