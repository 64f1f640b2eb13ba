package io.lastword.transport;

import java.lang.invoke.MethodHandle;
import java.lang.invoke.MethodHandles;
import java.lang.invoke.MethodType;
import java.net.ProxySelector;
import java.net.http.HttpClient;
import java.time.Duration;
import java.util.LinkedHashMap;
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
 * connection that the server has just closed, and it keeps idle connections until the server closes
 * them (the system property {@code jdk.httpclient.keepalive.timeout}, in seconds, is read once). It
 * never sends a POST twice.
 */
public final class Transport {

  // limits at a time; a client that is dropped ends with its last exchange
  private static final int MOST = 8;

  private final Map<Optional<Duration>, HttpClient> clients = // under its own lock
      new LinkedHashMap<>(16, 0.75f, true) {
        private static final long serialVersionUID = 1L;

        @Override
        protected boolean removeEldestEntry(Map.Entry<Optional<Duration>, HttpClient> eldest) {
          return size() > MOST;
        }
      };
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
    synchronized (clients) {
      return clients.computeIfAbsent(
          Optional.ofNullable(connect), limit -> make(limit.orElse(null)));
    }
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
