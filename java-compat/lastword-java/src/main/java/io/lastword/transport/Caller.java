package io.lastword.transport;

import io.lastword.Codes;
import io.lastword.Completed;
import io.lastword.Outcome;
import io.lastword.Partial;
import io.lastword.core.Classifier;
import io.lastword.core.Deadline;
import io.lastword.core.Json;
import io.lastword.core.ModelList;
import io.lastword.core.StreamTracker.WireEnd;
import io.lastword.errors.LastwordException;
import java.nio.charset.StandardCharsets;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.Set;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.Flow;
import java.util.concurrent.RejectedExecutionException;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.function.Function;
import java.util.function.Supplier;
import org.jspecify.annotations.Nullable;

/** Makes calls, and ends those that run when it is closed. For several threads. */
public final class Caller {

  private final Transport transport;
  private final String baseUrl;
  private final CallRules rules;
  private final Set<Guard> running = ConcurrentHashMap.newKeySet();
  private volatile boolean closed;

  /** A caller of the server at {@code baseUrl}. */
  public Caller(Transport transport, String baseUrl, CallRules rules) {
    this.transport = transport;
    this.baseUrl = baseUrl;
    this.rules = rules;
  }

  /** Wait for a whole answer that generates. */
  public Completed create(Prepared request) {
    return create(begun(request));
  }

  /** Wait for the list of models. */
  public List<Map<String, @Nullable Object>> list(Prepared request) {
    Call call = begun(request);
    return finished(
        call,
        () -> {
          Object answer = answer(call);
          String wrong = ModelList.wrong(answer);
          if (wrong != null) {
            byte[] raw = Json.shown(answer).getBytes(StandardCharsets.UTF_8);
            throw call.malformed(wrong, raw);
          }
          call.note(null);
          return ModelList.entries(answer);
        });
  }

  /** Send a request for a stream, and wait for the head of its answer. */
  public StreamReading stream(Prepared request) {
    StreamReading reading = reading(begun(request));
    reading.open();
    Outcome ended = reading.outcome();
    if (ended != null) { // before it began
      ended.orThrow();
    }
    return reading;
  }

  /**
   * One attempt at a request of any kind: its head, and its body as it comes.
   *
   * @throws LastwordException if no head came
   */
  public RawAnswer raw(Prepared request) {
    return raw(begun(request));
  }

  private RawAnswer raw(Call call) {
    Wire wire = new Wire(transport, baseUrl, call);
    Exchange begun = null;
    try {
      begun = wire.send();
      return new RawAnswer(call, wire, begun, () -> running.remove(call.guard()));
    } catch (Failure failure) {
      throw call.thrown(failure);
    } finally {
      if (begun == null) {
        running.remove(call.guard());
      }
    }
  }

  /** A whole answer, later. */
  public CompletableFuture<Completed> createAsync(Supplier<Prepared> request) {
    return later(request, this::create);
  }

  /** The same as {@link #raw}, later, as what {@code build} makes of it. {@code cancel} ends it. */
  public <T extends AutoCloseable> CompletableFuture<T> rawAsync(
      Supplier<Prepared> request, Function<RawAnswer, T> build) {
    return later(request, call -> build.apply(raw(call)));
  }

  /** The chunks of a stream, as they are asked for. */
  public <T> Flow.Publisher<T> publisher(
      Supplier<Prepared> request, Function<Map<String, @Nullable Object>, T> build) {
    return subscriber ->
        ChunkSubscription.begin(
            subscriber, request, each -> reading(begun(each)), build, transport.workers());
  }

  /** End every call that runs, with {@code CancelledException}, and let no other begin. */
  public void close() {
    closed = true;
    running.forEach(Guard::cancel);
    transport.close();
  }

  private <T> CompletableFuture<T> later(Supplier<Prepared> request, Function<Call, T> work) {
    Call call;
    try {
      call = begun(request.get());
    } catch (LastwordException e) {
      return CompletableFuture.failedFuture(e);
    }
    CompletableFuture<T> future = new CompletableFuture<>();
    AtomicBoolean worked = new AtomicBoolean();
    future.whenComplete(
        (value, error) -> {
          if (!worked.get()) {
            // cancelled, timed out, completed by somebody else: nobody waits for it any more
            call.guard().cancel();
          }
        });
    try {
      transport
          .workers()
          .start(
              () -> {
                try {
                  T value = work.apply(call);
                  worked.set(true);
                  if (!future.complete(value) && value instanceof AutoCloseable unwanted) {
                    unwanted.close();
                  }
                } catch (Throwable e) {
                  future.completeExceptionally(e);
                }
              });
    } catch (RejectedExecutionException e) { // closed meanwhile
      future.completeExceptionally(closedError(call.request()));
      running.remove(call.guard());
    }
    return future;
  }

  private Completed create(Call call) {
    return finished(
        call,
        () -> {
          Object body = answer(call);
          call.tracker().acceptBody(body);
          Failure failure = call.ended(WireEnd.COMPLETE, false);
          if (failure != null) {
            throw failure;
          }
          return call.completed(
              Objects.requireNonNull(Json.object(body), "only an object can be whole"));
        });
  }

  private StreamReading reading(Call call) {
    return new StreamReading(transport, baseUrl, call, () -> running.remove(call.guard()));
  }

  private <T> T finished(Call call, Call.Step<T> attempt) {
    try {
      return call.retrying(attempt);
    } catch (Failure failure) {
      throw call.thrown(failure);
    } finally {
      running.remove(call.guard());
    }
  }

  /** One attempt at an answer without a stream, as parsed JSON that is no error. */
  private @Nullable Object answer(Call call) throws Failure {
    Wire wire = new Wire(transport, baseUrl, call);
    byte[] body = wire.read(wire.send());
    Failure refusal = call.refusal(body);
    if (refusal != null) {
      throw refusal;
    }
    try {
      return Json.parse(Classifier.text(body));
    } catch (Json.NotJsonException e) {
      throw new Failure(call.answer().noJson(body), null);
    }
  }

  private Call begun(Prepared request) {
    Guard guard = new Guard(new Deadline(request.timeouts(), request.stream(), System.nanoTime()));
    running.add(guard);
    if (closed) {
      running.remove(guard);
      throw closedError(request);
    }
    return new Call(request, guard, rules);
  }

  private static LastwordException closedError(Prepared request) {
    return LastwordException.of(
        Classifier.error(Codes.CANCELLED, "the client is closed; nothing was sent")
            .requestId(request.requestId())
            .build(),
        Partial.NOTHING,
        List.of(),
        null);
  }
}
