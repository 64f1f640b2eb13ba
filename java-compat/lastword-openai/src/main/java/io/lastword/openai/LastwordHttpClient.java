package io.lastword.openai;

import com.openai.core.RequestOptions;
import com.openai.core.http.HttpClient;
import com.openai.core.http.HttpRequest;
import com.openai.core.http.HttpResponse;
import com.openai.errors.OpenAIIoException;
import io.lastword.Codes;
import io.lastword.Timeouts;
import io.lastword.errors.LastwordException;
import java.io.IOException;
import java.time.Duration;
import java.util.Collections;
import java.util.Map;
import java.util.Objects;
import java.util.Set;
import java.util.UUID;
import java.util.WeakHashMap;
import java.util.concurrent.CancellationException;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionException;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import org.jspecify.annotations.Nullable;

/**
 * openai-java's HTTP client, decorated: an answer that is not whole is an error, and an error says
 * what it is. That goes for chat completions, completions and the list of models; of Responses,
 * embeddings and files only error responses are looked at.
 *
 * <pre>{@code
 * ClientOptions options = ClientOptions.builder()
 *     .httpClient(LastwordHttpClient.create())
 *     .baseUrl("http://127.0.0.1:8000/v1").apiKey("k").build();
 * OpenAIClient client = new OpenAIClientImpl(options);
 * }</pre>
 *
 * <p>It sits below openai-java's own handling of errors and retries, and existing {@code catch}
 * blocks keep working:
 *
 * <ul>
 *   <li>An answer that is wrong before anything of it has been handed over becomes an error
 *       response, so openai-java throws the class that it has for its status; {@code code()} is the
 *       contract's, a string, whatever the server's dialect. An answer of 200 that is an error, or
 *       that is not whole, comes as the status that the contract has for its code, or as 502.
 *   <li>Where no answer came, openai-java has its own {@code OpenAIIoException}, after which it
 *       tries again; its asynchronous client would not, and gets a response of 502. Where a timer
 *       other than {@code connect} has fired, somebody has stopped the call or the certificate is
 *       not trusted, it is a {@link LastwordOpenAIException}.
 *   <li>openai-java keeps the loop of retries ({@code maxRetries}), and the contract decides: each
 *       error carries {@code x-should-retry}, and {@code retry-after-ms} where the server gave a
 *       hint that can be obeyed.
 *   <li>A stream that breaks after its first chunk throws {@link LastwordOpenAIException} out of
 *       the loop that reads it.
 *   <li>{@code "error": null} in a chunk is taken out, on which openai-java throws.
 * </ul>
 *
 * <p>{@link LastwordErrors#of} gives the contract's exception for whatever was thrown.
 */
public final class LastwordHttpClient implements HttpClient {

  static final String CLOSED = "the client was closed while the request was waiting";

  private final HttpClient delegate;
  private final AnswerCheck check;
  private final Set<Runnable> endings = ConcurrentHashMap.newKeySet(); // of calls that run
  // By the options that openai-java passes to each attempt of a call and makes for each call.
  private final Map<RequestOptions, String> ids = Collections.synchronizedMap(new WeakHashMap<>());
  private volatile boolean closed;

  private LastwordHttpClient(HttpClient delegate, Timeouts timeouts) {
    this.delegate = Objects.requireNonNull(delegate, "delegate");
    this.check = new AnswerCheck(timeouts);
  }

  /**
   * On the JDK's own HTTP client, with the default limits of {@link Timeouts} for the silence of a
   * stream. Of openai-java's {@code Timeout} it keeps {@code connect} and {@code request}.
   */
  public static LastwordHttpClient create() {
    return create(Timeouts.defaults());
  }

  /** The same with other limits; see {@link #around(HttpClient, Timeouts)}. */
  public static LastwordHttpClient create(Timeouts timeouts) {
    return around(new JdkHttpClient(), timeouts);
  }

  /**
   * Around a client that you have already, for its proxies and certificates, say.
   *
   * <p>Every call goes through its {@code executeAsync}, whose waits can be ended; OkHttp runs 64
   * of those at a time unless its {@code Dispatcher} is told otherwise. A stream that is left keeps
   * its socket until {@code delegate} lets it go, with OkHttp until the server's next byte.
   */
  public static LastwordHttpClient around(HttpClient delegate) {
    return around(delegate, Timeouts.defaults());
  }

  /**
   * The same with other limits.
   *
   * @param timeouts {@code firstToken} and {@code idle} are kept here; {@code connect} and {@code
   *     total} are openai-java's own {@code Timeout.connect} and {@code Timeout.request}, which are
   *     for each attempt
   */
  public static LastwordHttpClient around(HttpClient delegate, Timeouts timeouts) {
    return new LastwordHttpClient(delegate, timeouts);
  }

  @Override
  public HttpResponse execute(HttpRequest request, RequestOptions options) {
    Asked asked = asked(request, options);
    long began = System.nanoTime();
    // Not execute: what waits there cannot be woken.
    CompletableFuture<HttpResponse> answer = begin(asked, options);
    endOnClose(answer, () -> answer.cancel(true));
    Duration patience = check.patience(asked);
    try {
      HttpResponse response =
          patience == null ? answer.get() : answer.get(patience.toNanos(), TimeUnit.NANOSECONDS);
      return check.check(asked, response, began);
    } catch (TimeoutException e) {
      abandon(answer);
      throw check.silent(asked);
    } catch (InterruptedException e) {
      abandon(answer);
      Thread.currentThread().interrupt();
      throw AnswerCheck.cancelled(asked, AnswerCheck.INTERRUPTED);
    } catch (CancellationException e) {
      throw thrown(asked, e);
    } catch (ExecutionException e) {
      return answerOrThrow(asked, thrown(asked, e.getCause()));
    }
  }

  @Override
  public CompletableFuture<HttpResponse> executeAsync(HttpRequest request, RequestOptions options) {
    Asked asked = asked(request, options);
    long began = System.nanoTime();
    CompletableFuture<HttpResponse> answer = begin(asked, options);
    CompletableFuture<HttpResponse> checked = new CompletableFuture<>();
    // At once: once closed, openai-java has no thread left to tell the caller.
    endOnClose(checked, () -> checked.completeExceptionally(AnswerCheck.cancelled(asked, CLOSED)));
    // Not on the delegate's own threads: this waits for the first content of a stream.
    answer.whenCompleteAsync(
        (response, error) -> {
          try {
            HttpResponse good =
                error != null
                    ? answerOrThrowLater(asked, thrown(asked, error))
                    : check.check(asked, response, began);
            if (!checked.complete(good)) {
              good.close();
            }
          } catch (Throwable e) {
            checked.completeExceptionally(e);
          }
        },
        DaemonThreads.CHECK);
    checked.whenComplete(
        (response, error) -> {
          if (error != null) {
            abandon(answer);
          }
        });
    Duration patience = check.patience(asked);
    if (patience != null) {
      failLate(answer, patience, () -> checked.completeExceptionally(check.silent(asked)));
    }
    return checked;
  }

  /** Run {@code fail}, on a thread of ours, if there is no answer after {@code patience}. */
  private static void failLate(
      CompletableFuture<HttpResponse> answer, Duration patience, Runnable fail) {
    // Not delayedExecutor: it would keep the request until then.
    CompletableFuture<Void> timer = new CompletableFuture<>();
    timer.orTimeout(patience.toNanos(), TimeUnit.NANOSECONDS);
    // Not on the JVM's one thread for timers: what depends on this is the caller's.
    timer.whenCompleteAsync(
        (none, late) -> {
          if (late instanceof TimeoutException && !answer.isDone()) {
            fail.run();
          }
        },
        DaemonThreads.CHECK);
    answer.whenComplete((response, error) -> timer.cancel(false));
  }

  private Asked asked(HttpRequest request, RequestOptions options) {
    String fresh = UUID.randomUUID().toString();
    boolean shared = options == RequestOptions.none(); // of calls past openai-java's services
    return Asked.of(request, options, shared ? fresh : ids.computeIfAbsent(options, each -> fresh));
  }

  private CompletableFuture<HttpResponse> begin(Asked asked, RequestOptions options) {
    if (closed) {
      throw AnswerCheck.cancelled(asked, "the client is closed; nothing was sent");
    }
    return delegate.executeAsync(asked.request(), options);
  }

  private void endOnClose(CompletableFuture<HttpResponse> call, Runnable ending) {
    endings.add(ending);
    call.whenComplete((response, error) -> endings.remove(ending));
    if (closed) { // meanwhile
      ending.run();
    }
  }

  /**
   * Nobody waits any more; what comes all the same is closed, and what is there if any thread may.
   */
  private static void abandon(CompletableFuture<HttpResponse> answer) {
    boolean there = answer.isDone();
    answer.cancel(true);
    answer.thenAccept(
        response -> {
          if (!there || response.body() instanceof RawBody) {
            response.close();
          }
        });
  }

  /**
   * An error response, if the head has already shown that the answer cannot be read; else {@code
   * thrown}.
   */
  private HttpResponse answerOrThrow(Asked asked, RuntimeException thrown) {
    if (thrown instanceof LastwordOpenAIException told
        && told.error().code().equals(Codes.MALFORMED_RESPONSE)) {
      return check.refused(asked, told.error().info());
    }
    throw thrown;
  }

  /**
   * The same for an asynchronous call, whose loop of retries does not know {@link
   * OpenAIIoException}: that is an error response too.
   */
  private HttpResponse answerOrThrowLater(Asked asked, RuntimeException thrown) {
    return thrown instanceof OpenAIIoException
        ? check.refused(asked, LastwordErrors.of(thrown).orElseThrow(() -> thrown).info())
        : answerOrThrow(asked, thrown);
  }

  /**
   * What openai-java is to be thrown: an {@link OpenAIIoException} only where it should try again,
   * and after {@link #close} always that the call was cancelled.
   */
  private RuntimeException thrown(Asked asked, @Nullable Throwable error) {
    Throwable cause =
        error instanceof CompletionException && error.getCause() != null ? error.getCause() : error;
    boolean failed = cause instanceof IOException || cause instanceof OpenAIIoException;
    if (cause instanceof CancellationException || (closed && failed)) { // by close
      return AnswerCheck.cancelled(asked, CLOSED);
    }
    if (cause instanceof LastwordException known) {
      return JdkHttpClient.thrown(known);
    }
    RuntimeException given =
        cause instanceof RuntimeException e ? e : new OpenAIIoException("Request failed", cause);
    return LastwordErrors.of(given)
        .filter(known -> !JdkHttpClient.mayBeRetried(known))
        .<RuntimeException>map(LastwordOpenAIException::new)
        .orElse(given);
  }

  /**
   * End every call that waits for its answer, and every chat completion, completion or list of
   * models that is being read, and let no other begin. Other bodies end as {@code delegate} ends
   * them.
   */
  @Override
  public void close() {
    closed = true;
    endings.forEach(Runnable::run);
    check.close();
    delegate.close();
  }
}
