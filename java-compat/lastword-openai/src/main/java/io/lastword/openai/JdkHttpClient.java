package io.lastword.openai;

import com.openai.core.RequestOptions;
import com.openai.core.Timeout;
import com.openai.core.http.Headers;
import com.openai.core.http.HttpClient;
import com.openai.core.http.HttpRequest;
import com.openai.core.http.HttpRequestBody;
import com.openai.core.http.HttpResponse;
import com.openai.errors.OpenAIIoException;
import io.lastword.Codes;
import io.lastword.RetryPolicy;
import io.lastword.Timeouts;
import io.lastword.core.RetryBudget;
import io.lastword.errors.LastwordException;
import io.lastword.transport.CallRules;
import io.lastword.transport.Caller;
import io.lastword.transport.Prepared;
import io.lastword.transport.RawAnswer;
import io.lastword.transport.Transport;
import java.io.ByteArrayOutputStream;
import java.time.Duration;
import java.util.LinkedHashMap;
import java.util.Locale;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.CompletableFuture;
import org.jspecify.annotations.Nullable;

/**
 * openai-java on the JDK's own HTTP client: HTTP/1.1, daemon threads only, and a body that any
 * thread can close at once, which with OkHttp none can while another one reads.
 */
final class JdkHttpClient implements HttpClient {

  private static final Set<String> CONNECT_CODES =
      Set.of(Codes.CONNECTION_FAILED, Codes.CONNECT_TIMEOUT);

  private static final Duration LIFETIME = Duration.ofDays(10_000);

  private final Caller caller =
      new Caller(
          new Transport(null, null),
          "",
          new CallRules(RetryPolicy.never(), new RetryBudget(null), null));

  @Override
  public HttpResponse execute(HttpRequest request, RequestOptions options) {
    return answer(caller.raw(prepared(request, options)));
  }

  @Override
  public CompletableFuture<HttpResponse> executeAsync(HttpRequest request, RequestOptions options) {
    return caller.rawAsync(() -> prepared(request, options), JdkHttpClient::answer);
  }

  @Override
  public void close() {
    caller.close();
  }

  /**
   * openai-java tries again after an {@link OpenAIIoException}, and after nothing else that is
   * thrown.
   */
  static RuntimeException thrown(LastwordException error) {
    return mayBeRetried(error)
        ? new OpenAIIoException(error.getMessage(), error)
        : new LastwordOpenAIException(error);
  }

  static boolean mayBeRetried(LastwordException error) {
    return error.retryable() && CONNECT_CODES.contains(error.code());
  }

  private static HttpResponse answer(RawAnswer answer) {
    Headers.Builder headers = Headers.builder();
    answer.headers().forEach(headers::put);
    return new Answer(answer.status(), headers.build(), new RawBody(answer));
  }

  private static Prepared prepared(HttpRequest request, RequestOptions options) {
    Map<String, String> headers = new LinkedHashMap<>();
    for (String name : request.headers().names()) {
      headers.put(name.toLowerCase(Locale.ROOT), String.join(", ", request.headers().values(name)));
    }
    byte[] content = new byte[0];
    HttpRequestBody body = request.body();
    if (body != null) {
      ByteArrayOutputStream bytes = new ByteArrayOutputStream();
      try (body) {
        body.writeTo(bytes);
      }
      content = bytes.toByteArray();
      String type = body.contentType();
      if (type != null) {
        headers.putIfAbsent("content-type", type);
      }
    }
    return Prepared.any(
        request.method().name(),
        request.url(),
        headers,
        content,
        timeouts(options),
        Asked.attemptOf(request));
  }

  private static Timeouts timeouts(RequestOptions options) {
    Timeout given = options.getTimeout();
    if (given == null) {
      return Timeouts.defaults();
    }
    return Timeouts.none().withConnect(limit(given.connect())).withTotal(limit(given.request()));
  }

  /** openai-java's zero is no limit, and neither is a lifetime. */
  static @Nullable Duration limit(Duration given) {
    return given.isZero() || given.compareTo(LIFETIME) > 0 ? null : given;
  }
}
