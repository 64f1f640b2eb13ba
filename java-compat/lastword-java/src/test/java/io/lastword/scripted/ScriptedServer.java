package io.lastword.scripted;

import java.io.IOException;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.net.ServerSocket;
import java.net.Socket;
import java.nio.channels.SocketChannel;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Deque;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.function.BooleanSupplier;

/**
 * A server that plays a vector's exchanges on real sockets: raw HTTP/1.1, since no HTTP library
 * cuts a chunked body, resets a connection or falls silent on request.
 */
public final class ScriptedServer implements AutoCloseable {

  /** How it listens. */
  public enum Listening {
    YES,
    /** Connecting is refused. */
    NO,
    /** Connecting gets no answer: the backlog is full. */
    FULL
  }

  final String segmentation;
  final List<Received> requests = new CopyOnWriteArrayList<>();
  volatile boolean closing;
  private final Deque<Script> unasked = new ArrayDeque<>();
  private final List<String> beyond = new CopyOnWriteArrayList<>();
  private final List<Connection> connections = new CopyOnWriteArrayList<>();
  private final List<SocketChannel> fillers = new ArrayList<>();
  private final ServerSocket listener;

  /** A server that answers the first request by the first exchange, and so on. */
  public ScriptedServer(
      List<Map<String, Object>> exchanges, String segmentation, Listening listening)
      throws IOException {
    this.segmentation = segmentation;
    exchanges.forEach(each -> unasked.add(new Script(each)));
    listener = new ServerSocket();
    listener.bind(
        new InetSocketAddress(InetAddress.getLoopbackAddress(), 0),
        listening == Listening.FULL ? 1 : 128);
    if (listening == Listening.YES) {
      Thread thread = new Thread(this::accept, "scripted-server");
      thread.setDaemon(true);
      thread.start();
    } else if (listening == Listening.NO) {
      listener.close();
    } else {
      for (int i = 0; i < 4; i++) { // a backlog of 1 holds two finished handshakes on Linux
        SocketChannel filler = SocketChannel.open();
        filler.configureBlocking(false);
        filler.connect(listener.getLocalSocketAddress());
        fillers.add(filler);
      }
      sleep(50);
    }
  }

  /** What a client takes as its base URL. */
  public String baseUrl() {
    return "http://127.0.0.1:" + listener.getLocalPort() + "/v1";
  }

  /** The requests so far. */
  public List<Received> requests() {
    return requests;
  }

  /** What did not go by the script so far. */
  public List<String> problems() {
    List<String> problems = new ArrayList<>(beyond);
    for (int i = 0; i < requests.size(); i++) {
      for (String each : requests.get(i).problems()) {
        problems.add("request " + (i + 1) + ": " + each);
      }
    }
    return problems;
  }

  /** Block until it holds; false after so many milliseconds. */
  public static boolean becomes(BooleanSupplier condition, long millis) {
    long until = System.nanoTime() + millis * 1_000_000;
    while (!condition.getAsBoolean()) {
      if (System.nanoTime() > until) {
        return false;
      }
      sleep(5);
    }
    return true;
  }

  /** Let the running scripts end, for at most their own waits, and close every socket. */
  @Override
  public void close() throws IOException {
    closing = true;
    listener.close();
    becomes(() -> connections.stream().noneMatch(Connection::busy), 9_000);
    connections.forEach(Connection::abort);
    for (SocketChannel each : fillers) {
      each.close();
    }
  }

  /** The next exchange, for a request. */
  synchronized Script take(Received request) {
    requests.add(request);
    if (unasked.isEmpty()) {
      beyond.add("a request beyond the script: " + request.method + " " + request.path);
      return new Script(Map.of("status", 500, "steps", List.of(Map.of("json", Map.of()))));
    }
    Script script = unasked.remove();
    request.compare(script.request, requests.get(0));
    return script;
  }

  private void accept() {
    try {
      while (true) {
        Socket socket = listener.accept();
        connections.add(new Connection(this, socket, connections.size() + 1));
      }
    } catch (IOException e) {
      // closed
    }
  }

  static void sleep(long millis) {
    try {
      Thread.sleep(millis);
    } catch (InterruptedException e) {
      Thread.currentThread().interrupt();
    }
  }
}
