package io.lastword.transport;

import java.lang.invoke.MethodHandle;
import java.lang.invoke.MethodHandles;
import java.lang.invoke.MethodType;
import java.net.ProxySelector;
import java.net.http.HttpClient;
import java.time.Duration;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import javax.net.ssl.SSLContext;
import org.jspecify.annotations.Nullable;

/**
 * The JDK's HTTP clients: one for each limit of the time to connect, which the JDK wants to know at
 * the start.
 *
 * <p>HTTP/1.1 only: with the JDK's default each plain request asks to be upgraded to h2c, and a
 * uvicorn with httptools, which is what vLLM runs on, then gives the application an empty body. All
 * its threads are daemons.
 *
 * <p>Two things of the JDK's client no library can change: it sends a GET again by itself on a
 * connection that the server has just closed, and it keeps idle connections for 30 s, before JDK 20
 * for 1200 s (the system property {@code jdk.httpclient.keepalive.timeout}, in seconds, is read
 * once). It never sends a POST twice.
 */
public final class Transport {

  // So many limits have a client of their own. Further ones are rounded up and share: no client is
  // dropped, since its threads and connections stay until it is collected.
  private static final int EXACT = 8;

  private final Map<Optional<Duration>, HttpClient> clients = new HashMap<>(); // its own lock
  private final Workers workers = new Workers();
  private final @Nullable SSLContext sslContext;
  private final @Nullable ProxySelector proxy;

  /** Clients with this TLS context and these proxies; null takes the JDK's default. */
  public Transport(@Nullable SSLContext sslContext, @Nullable ProxySelector proxy) {
    this.sslContext = sslContext;
    this.proxy = proxy;
  }

  Workers workers() {
    return workers;
  }

  HttpClient client(@Nullable Duration connect) {
    Optional<Duration> limit = Optional.ofNullable(connect);
    synchronized (clients) {
      if (!clients.containsKey(limit) && clients.size() >= EXACT) {
        limit = limit.map(Transport::rounded);
      }
      return clients.computeIfAbsent(limit, each -> make(each.orElse(null)));
    }
  }

  /** Up to the next power of two, in milliseconds. */
  private static Duration rounded(Duration limit) {
    long millis = Math.max(2, limit.plusNanos(999_999).toMillis());
    return Duration.ofMillis(Long.highestOneBit(millis - 1) << 1);
  }

  /**
   * Begin nothing new, and close idle connections now, where the JDK can (21 and newer); older ones
   * do it once nobody refers to the client.
   */
  public void close() {
    workers.close();
    List<HttpClient> open;
    synchronized (clients) {
      open = List.copyOf(clients.values());
      clients.clear();
    }
    for (HttpClient client : open) {
      try {
        MethodType type = MethodType.methodType(void.class);
        MethodHandle shutdownNow =
            MethodHandles.publicLookup().findVirtual(HttpClient.class, "shutdownNow", type);
        shutdownNow.invoke(client);
      } catch (NoSuchMethodException e) {
        break;
      } catch (Throwable e) {
        throw new IllegalStateException(e);
      }
    }
  }

  private HttpClient make(@Nullable Duration connect) {
    HttpClient.Builder builder =
        HttpClient.newBuilder()
            .version(HttpClient.Version.HTTP_1_1)
            .followRedirects(HttpClient.Redirect.NEVER);
    if (connect != null) {
      builder.connectTimeout(connect);
    }
    if (sslContext != null) {
      builder.sslContext(sslContext);
    }
    if (proxy != null) {
      builder.proxy(proxy);
    }
    return builder.build();
  }
}
