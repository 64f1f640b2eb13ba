package io.lastword;

import io.lastword.errors.LastwordException;
import io.lastword.transport.Caller;
import io.lastword.transport.Prepared;
import java.util.LinkedHashMap;
import java.util.Map;
import java.util.Objects;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.Flow;

/**
 * One endpoint that generates: {@code /chat/completions} or {@code /completions}.
 *
 * @param <R> what it takes
 */
public final class Endpoint<R extends Request> {

  private final LastwordClient client;
  private final String path;

  Endpoint(LastwordClient client, String path) {
    this.client = client;
    this.path = path;
  }

  /**
   * Wait for the whole answer.
   *
   * @throws LastwordException if the request did not complete
   */
  public Completed create(R request) {
    Objects.requireNonNull(request, "request");
    return caller().create(prepared(request, false));
  }

  /** Wait for the last word, whichever it is; nothing is thrown. */
  public Outcome tryCreate(R request) {
    Objects.requireNonNull(request, "request");
    try {
      return create(request);
    } catch (LastwordException e) {
      return Outcome.of(e);
    }
  }

  /**
   * Send the request, and wait for the head of its answer; the chunks are read from the stream,
   * which is to be closed.
   *
   * @throws LastwordException if no stream began
   */
  public AnswerStream createStreaming(R request) {
    Objects.requireNonNull(request, "request");
    return new AnswerStream(caller().stream(prepared(request, true)));
  }

  /**
   * The whole answer, later. {@code cancel} of this future closes the connection at once (that of
   * one made from it, by {@code thenApply} say, does not reach it); a failure is a {@link
   * LastwordException}, as the cause of what {@code get} and {@code join} throw.
   */
  public CompletableFuture<Completed> createAsync(R request) {
    Objects.requireNonNull(request, "request");
    return caller().createAsync(() -> prepared(request, false));
  }

  /**
   * The chunks, as they are asked for. Each subscription sends the request anew, once something is
   * requested; it ends in {@code onComplete} if the answer is whole, and else in {@code onError}
   * with a {@link LastwordException}.
   *
   * <p>A subscription has to be cancelled or read to its end: until then it holds its connection,
   * and the server generates. The timers run only while something is asked for, so a subscriber
   * that asks for nothing more is never told that one has passed.
   */
  public Flow.Publisher<Chunk> publish(R request) {
    Objects.requireNonNull(request, "request");
    return caller().publisher(() -> prepared(request, true), Chunk::new);
  }

  private Caller caller() {
    return client.caller();
  }

  private Prepared prepared(R request, boolean stream) {
    Map<String, String> headers = new LinkedHashMap<>(client.headers());
    headers.putAll(request.headers());
    Timeouts own = request.timeouts();
    return Prepared.post(
        path, request.body(), stream, headers, own != null ? own : client.timeouts());
  }
}
