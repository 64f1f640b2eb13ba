package io.lastword.transport;

import java.io.IOException;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.nio.ByteBuffer;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionStage;
import java.util.concurrent.Flow;
import java.util.concurrent.Future;
import org.jspecify.annotations.Nullable;

/**
 * One HTTP exchange of the JDK's client, read by the thread that waits on the {@link Guard}.
 *
 * <p>The JDK's own timeout ends at the headers, and its streams cannot be closed safely while they
 * are read. So the body is a subscriber that hands each piece over by a signal, and {@link #close}
 * cancels the subscription, which closes the socket at once on every JDK.
 */
final class Exchange {

  /**
   * How many pieces of at most 16 KiB are taken before anybody asks. What the JDK holds back for
   * want of demand it drops when the connection ends behind it, the terminal event with it.
   */
  private static final int AHEAD = 32;

  private final Guard guard;
  private final Future<?> sending;
  private volatile boolean answered;
  private final Body body = new Body();
  private boolean ended; // the body has been read to its end
  private @Nullable IOException broken; // told each time: gzip swallows it where a member ends
  private @Nullable Inflated inflated;
  private volatile boolean over; // nothing is left that would have to be closed

  Exchange(HttpClient client, HttpRequest request, Guard guard, Workers workers) {
    this.guard = guard;
    this.sending = workers.start(() -> send(client, request));
    guard.hold(this);
  }

  /**
   * Not sendAsync: the JDK tells of a connection that failed on the common pool, which others may
   * keep busy for as long as they like.
   */
  private void send(HttpClient client, HttpRequest request) {
    try {
      client.send(
          request,
          head -> {
            answered = true;
            guard.tell(new Signal.Head(this, head));
            return body;
          });
    } catch (Throwable e) { // whatever it is, somebody waits to hear of it
      guard.tell(new Signal.NoAnswer(this, cause(e)));
    }
  }

  /** Wait for the head of the answer. */
  HttpResponse.ResponseInfo head() throws IOException, Stopped {
    Signal signal = next(); // the head's is given before the JDK has a body to give it to
    if (signal instanceof Signal.Head head) {
      return head.info();
    }
    over = true;
    throw failed(causeOf(signal));
  }

  /**
   * What is read from now on is what these bytes were before they were compressed; or as they are,
   * where they were not and that may be.
   */
  void inflate(String encoding, boolean mayBePlain) {
    inflated = new Inflated(this, !encoding.equals("deflate"), mayBePlain);
  }

  /** Wait for the next piece of the body; null at its end. */
  byte @Nullable [] read() throws IOException, Stopped {
    Inflated readable = inflated;
    return readable == null ? raw() : readable.read();
  }

  /** The same, as it came. */
  byte @Nullable [] raw() throws IOException, Stopped {
    if (broken != null) {
      throw broken;
    }
    if (ended) {
      return null;
    }
    Signal signal = next();
    if (signal instanceof Signal.Data data) {
      body.request();
      return joined(data.buffers());
    }
    over = true;
    if (!(signal instanceof Signal.End)) {
      broken = failed(causeOf(signal));
      throw broken;
    }
    ended = true;
    return null;
  }

  /** Close the connection, unless the body has been read to its end; from any thread. */
  void close() {
    if (!over) {
      over = true;
      body.cancel();
      if (!answered) { // else the JDK would close the connection even if it serves another already
        sending.cancel(true);
      }
    }
  }

  private Signal next() throws Stopped {
    while (true) {
      Signal signal = guard.await();
      if (signal.exchange() == this) {
        return signal;
      }
    }
  }

  private static Throwable causeOf(Signal signal) {
    if (signal instanceof Signal.Broken broken) {
      return broken.cause();
    }
    return signal instanceof Signal.NoAnswer none
        ? none.cause()
        : new IllegalStateException(signal.toString());
  }

  /** The JDK wraps what it met into one more of its class, for the sake of the stack. */
  private static Throwable cause(Throwable error) {
    Throwable cause = error.getCause();
    return cause != null && cause.getClass() == error.getClass() ? cause : error;
  }

  private static IOException failed(Throwable cause) {
    return cause instanceof IOException known ? known : new IOException(cause);
  }

  private static byte[] joined(List<ByteBuffer> buffers) {
    int size = buffers.stream().mapToInt(ByteBuffer::remaining).sum();
    byte[] bytes = new byte[size];
    int at = 0;
    for (ByteBuffer each : buffers) {
      int length = each.remaining();
      each.get(bytes, at, length);
      at += length;
    }
    return bytes;
  }

  /**
   * Its stage is complete at once, so that the JDK hands the head over before the body has come.
   */
  private final class Body implements HttpResponse.BodySubscriber<Void> {
    private Flow.@Nullable Subscription subscription; // under the lock of this, like the others
    private boolean cancelled;
    private volatile boolean arrived; // to its end, whole or not

    @Override
    public CompletionStage<Void> getBody() {
      return CompletableFuture.completedFuture(null);
    }

    @Override
    public void onSubscribe(Flow.Subscription given) {
      boolean late;
      synchronized (this) {
        subscription = given;
        late = cancelled;
      }
      if (late) {
        given.cancel();
      } else {
        given.request(AHEAD);
      }
    }

    @Override
    public void onNext(List<ByteBuffer> buffers) {
      guard.tell(new Signal.Data(Exchange.this, buffers));
    }

    @Override
    public void onError(Throwable error) {
      arrived = true;
      guard.tell(new Signal.Broken(Exchange.this, error));
    }

    @Override
    public void onComplete() {
      arrived = true;
      guard.tell(new Signal.End(Exchange.this));
    }

    void request() {
      Flow.Subscription given;
      synchronized (this) {
        given = subscription;
      }
      if (given != null) {
        given.request(1);
      }
    }

    /** What has arrived may have given its connection to another request already. */
    void cancel() {
      Flow.Subscription given;
      synchronized (this) {
        cancelled = true;
        given = subscription;
      }
      if (given != null && !arrived) {
        given.cancel();
      }
    }
  }
}
