package io.lastword.core;

import io.lastword.Codes;
import java.util.Collections;
import java.util.Iterator;
import java.util.Map;
import org.jspecify.annotations.Nullable;

/** From the bytes of a stream to its chunks, each of which the tracker has seen. Pure. */
public final class ChunkDecoder {

  /** A chunk, and the event that it came in. */
  public record Decoded(Map<String, @Nullable Object> chunk, ServerSentEvent event) {}

  private final StreamTracker tracker;
  private final SseDecoder decoder = new SseDecoder();
  private Iterator<ServerSentEvent> events = Collections.emptyIterator();

  /** A decoder of the stream that {@code tracker} follows. */
  public ChunkDecoder(StreamTracker tracker) {
    this.tracker = tracker;
  }

  /** More of the body. */
  public void feed(byte[] piece) {
    events = decoder.feed(piece).iterator();
  }

  /** Whether the body would cut an event in two if it ended here. */
  public boolean pending() {
    return decoder.pending();
  }

  /** The next chunk; null if more is to be fed, or if the answer has ended by what was fed. */
  public @Nullable Decoded next() {
    while (events.hasNext() && !tracker.terminal()) {
      ServerSentEvent event = events.next();
      Map<String, @Nullable Object> chunk;
      synchronized (tracker) { // others may ask it what has been said
        chunk = tracker.accept(event);
      }
      if (chunk != null) {
        return new Decoded(chunk, event);
      }
    }
    if (decoder.tooLarge()) {
      int limit = SseDecoder.MAX_EVENT_BYTES;
      String message = "an event of the stream is larger than " + limit + " bytes";
      tracker.reject(
          Classifier.error(Codes.MALFORMED_RESPONSE, message)
              .details(Map.of("max_event_bytes", limit))
              .build());
    }
    return null;
  }
}
