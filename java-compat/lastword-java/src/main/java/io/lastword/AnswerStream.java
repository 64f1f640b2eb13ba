package io.lastword;

import io.lastword.errors.LastwordException;
import io.lastword.transport.StreamReading;
import java.lang.ref.Cleaner;
import java.util.Iterator;
import java.util.List;
import java.util.Map;
import java.util.NoSuchElementException;
import java.util.Spliterator;
import java.util.Spliterators;
import java.util.stream.Stream;
import java.util.stream.StreamSupport;
import org.jspecify.annotations.Nullable;

/**
 * The chunks of an answer, which ends in exactly one {@link #outcome}.
 *
 * <pre>{@code
 * try (AnswerStream stream = client.chat().completions().createStreaming(request)) {
 *   for (Chunk chunk : stream) {
 *     System.out.print(chunk.text());
 *   }
 * } // a LastwordException where the loop would otherwise have ended without the answer being whole
 * }</pre>
 *
 * <p>One thread reads; {@link #close} may be called from any, closes the socket at once, and gives
 * a thread that waits a {@link io.lastword.errors.CancelledException}. A stream that is dropped
 * without being closed is closed when it is collected. What is left of the connection after the
 * terminal event is not the caller's concern.
 */
public final class AnswerStream implements Iterable<Chunk>, Iterator<Chunk>, AutoCloseable {

  private static final Cleaner CLEANER = Cleaner.create();

  private final StreamReading reading;
  private final Cleaner.Cleanable cleanable;
  private @Nullable Chunk next;

  AnswerStream(StreamReading reading) {
    this.reading = reading;
    this.cleanable = CLEANER.register(this, reading::close);
  }

  /** Itself: a stream can be read once. */
  @Override
  public Iterator<Chunk> iterator() {
    return this;
  }

  /**
   * Wait for the next chunk.
   *
   * @return false once the answer is complete
   * @throws LastwordException if it ended without being whole; the same each time
   */
  @Override
  public boolean hasNext() {
    if (next == null) {
      Map<String, @Nullable Object> body = reading.next();
      next = body == null ? null : new Chunk(body);
    }
    return next != null;
  }

  /**
   * The next chunk, waited for if need be.
   *
   * @throws NoSuchElementException once the answer is complete
   * @throws LastwordException if it ended without being whole
   */
  @Override
  public Chunk next() {
    if (!hasNext() || next == null) {
      throw new NoSuchElementException("the answer is complete");
    }
    Chunk chunk = next;
    next = null;
    return chunk;
  }

  /** The same chunks, one after the other; closing it closes this. */
  public Stream<Chunk> stream() {
    int kind = Spliterator.ORDERED | Spliterator.NONNULL | Spliterator.IMMUTABLE;
    return StreamSupport.stream(Spliterators.spliteratorUnknownSize(this, kind), false)
        .onClose(this::close);
  }

  /** The last word; null while there is none. */
  public @Nullable Outcome outcome() {
    return reading.outcome();
  }

  /** What choice 0 has said so far. */
  public String text() {
    return texts().getOrDefault(0, "");
  }

  /** What each choice has said so far, by its index. */
  public Map<Integer, String> texts() {
    return reading.texts();
  }

  /**
   * The tool calls of the choices that have finished; one that was cut short is withheld (TOOL-2).
   */
  public List<ToolCall> toolCalls() {
    return reading.toolCalls();
  }

  /** The server's id of this request, else the one that was sent. */
  public @Nullable String requestId() {
    return reading.requestId();
  }

  /** End it now, from any thread; nothing happens if it has ended. */
  @Override
  public void close() {
    cleanable.clean();
  }
}
