package io.lastword.scripted;

import java.io.IOException;
import java.io.InputStream;
import java.net.InetAddress;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.security.KeyStore;
import java.util.List;
import java.util.concurrent.atomic.AtomicInteger;
import javax.net.ssl.KeyManagerFactory;
import javax.net.ssl.SSLContext;
import javax.net.ssl.SSLServerSocket;
import javax.net.ssl.SSLSocket;

/**
 * A TLS server with a certificate of its own making, on a free port of 127.0.0.1. It says nothing.
 */
public final class SelfSigned implements AutoCloseable {

  private static final String PASSWORD = "changeit";

  private final SSLServerSocket listener;
  private final AtomicInteger connections = new AtomicInteger();

  /** Its key is made in {@code folder}. */
  public SelfSigned(Path folder) throws Exception {
    SSLContext context = SSLContext.getInstance("TLS");
    KeyManagerFactory factory =
        KeyManagerFactory.getInstance(KeyManagerFactory.getDefaultAlgorithm());
    factory.init(keys(folder.resolve("keys.p12")), PASSWORD.toCharArray());
    context.init(factory.getKeyManagers(), null, null);
    listener =
        (SSLServerSocket)
            context
                .getServerSocketFactory()
                .createServerSocket(0, 50, InetAddress.getByName("127.0.0.1"));
    Thread server = new Thread(this::serve, "self-signed");
    server.setDaemon(true);
    server.start();
  }

  public String baseUrl() {
    return "https://127.0.0.1:" + listener.getLocalPort() + "/v1";
  }

  /** How many have come. */
  public int connections() {
    return connections.get();
  }

  @Override
  public void close() throws IOException {
    listener.close();
  }

  private void serve() {
    while (!listener.isClosed()) {
      try (SSLSocket socket = (SSLSocket) listener.accept()) {
        connections.incrementAndGet();
        socket.startHandshake();
        socket.getInputStream().read();
      } catch (IOException e) {
        // the client has refused the certificate, or the listener is closed
      }
    }
  }

  private static KeyStore keys(Path file) throws Exception {
    String keytool = Path.of(System.getProperty("java.home"), "bin", "keytool").toString();
    String given = "-genkeypair -keyalg EC -dname CN=127.0.0.1 -ext san=ip:127.0.0.1";
    ProcessBuilder made = new ProcessBuilder((keytool + " " + given).split(" "));
    made.command().addAll(List.of("-storepass", PASSWORD, "-keystore", file.toString()));
    Process running = made.redirectErrorStream(true).start();
    String said = new String(running.getInputStream().readAllBytes(), StandardCharsets.UTF_8);
    if (running.waitFor() != 0) {
      throw new IllegalStateException(said);
    }
    KeyStore store = KeyStore.getInstance("PKCS12");
    try (InputStream in = Files.newInputStream(file)) {
      store.load(in, PASSWORD.toCharArray());
    }
    return store;
  }
}
