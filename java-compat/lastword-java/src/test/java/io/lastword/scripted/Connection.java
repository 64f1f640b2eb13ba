package io.lastword.scripted;

import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.io.InputStream;
import java.io.OutputStream;
import java.net.Socket;
import java.nio.charset.StandardCharsets;
import java.util.Arrays;
import java.util.Locale;
import java.util.Map;
import java.util.TreeMap;

/**
 * One accepted connection: a thread that reads what the client sends and notes when it leaves, and
 * one that plays.
 */
final class Connection {

  private final ScriptedServer server;
  private final Socket socket;
  private final int number;
  // of a body that is sent as a whole
  private final ByteArrayOutputStream held = new ByteArrayOutputStream();
  // under the lock of this
  private byte[] buffer = new byte[0];
  private volatile boolean gone;
  private volatile boolean over;
  private volatile Received current;

  Connection(ScriptedServer server, Socket socket, int number) throws IOException {
    this.server = server;
    this.socket = socket;
    this.number = number;
    socket.setTcpNoDelay(true);
    start(this::read, "scripted-read");
    start(this::serve, "scripted-play");
  }

  boolean busy() {
    return current != null;
  }

  void abort() {
    over = true;
    try {
      socket.close();
    } catch (IOException e) {
      // closed it is
    }
  }

  private static void start(Runnable work, String name) {
    Thread thread = new Thread(work, name);
    thread.setDaemon(true);
    thread.start();
  }

  private void read() {
    byte[] piece = new byte[65536];
    try {
      InputStream in = socket.getInputStream();
      for (int size = in.read(piece); size >= 0; size = in.read(piece)) {
        synchronized (this) {
          int length = buffer.length;
          buffer = Arrays.copyOf(buffer, length + size);
          System.arraycopy(piece, 0, buffer, length, size);
          notifyAll();
        }
      }
    } catch (IOException e) {
      // a reset, or closed here
    }
    synchronized (this) {
      gone = true;
      Received now = current;
      if (now != null && !over) {
        now.disconnectedAt = System.nanoTime();
      }
      notifyAll();
    }
  }

  private void serve() {
    try {
      while (!over) {
        Received request = request();
        if (request == null) {
          break;
        }
        current = request;
        try {
          play(server.take(request), request);
        } finally {
          request.endedAt = System.nanoTime();
          current = null;
        }
      }
    } catch (IOException e) {
      // the client has gone
    }
    abort();
  }

  private void play(Script script, Received request) throws IOException {
    for (Step step : script.before) {
      pause(step, request);
    }
    write(script.head());
    boolean mayLeave = false;
    for (int position = 0; position < script.steps.size(); position++) {
      Step step = script.steps.get(position);
      if (step instanceof Step.End end) {
        end(end, script, request);
      } else if (!(step instanceof Step.Send send)) {
        pause(step, request);
      } else if (!gone) {
        for (byte[] piece : Step.segments(send.payload(), server.segmentation)) {
          write(script.chunked ? chunk(piece) : piece);
          Thread.yield();
        }
        mayLeave |= send.last();
      } else if (!mayLeave && !script.expectsLeaving(position)) {
        request.unsent = script.steps.size() - position;
        return;
      }
    }
    request.answered = true;
  }

  private void pause(Step step, Received request) throws IOException {
    flush();
    if (step instanceof Step.Delay delay) {
      untilGone(delay.millis(), true);
    } else if (step instanceof Step.AwaitDisconnect await && !untilGone(await.millis(), false)) {
      request.stayed = await.millis();
    }
  }

  private void end(Step.End end, Script script, Received request) throws IOException {
    switch (end.how()) {
      case "complete" -> {
        if (script.chunked) {
          write("0\r\n\r\n".getBytes(StandardCharsets.US_ASCII));
        }
        flush();
        if (script.closes || "close".equalsIgnoreCase(request.headers.get("connection"))) {
          finish();
        }
      }
      case "truncate" -> {
        flush();
        finish();
      }
      case "stall" -> {
        flush();
        untilGone(60_000, true);
      }
      case "reset" -> {
        flush();
        // Some kernels drop what was received but not yet read when an RST arrives.
        untilGone(20, false);
        over = true;
        socket.setSoLinger(true, 0);
        socket.close();
      }
      default -> throw new IllegalArgumentException("an end: " + end.how());
    }
  }

  /** A FIN behind what was sent; closing with unread bytes would be a reset. */
  private void finish() throws IOException {
    over = true;
    if (!gone) {
      socket.shutdownOutput();
      untilGone(1_000, true);
    }
    socket.close();
  }

  private synchronized boolean untilGone(long millis, boolean orClosing) {
    long until = System.nanoTime() + millis * 1_000_000;
    try {
      while (!gone && !(orClosing && server.closing)) {
        long left = (until - System.nanoTime()) / 1_000_000;
        if (left <= 0) {
          break;
        }
        wait(Math.min(left, 10));
      }
    } catch (InterruptedException e) {
      Thread.currentThread().interrupt();
    }
    return gone;
  }

  private void write(byte[] bytes) throws IOException {
    if (server.segmentation.equals("whole")) {
      held.writeBytes(bytes);
    } else if (!gone) {
      send(bytes);
    }
  }

  private void flush() throws IOException {
    if (held.size() > 0 && !gone) {
      send(held.toByteArray());
    }
    held.reset();
  }

  private void send(byte[] bytes) {
    try {
      OutputStream out = socket.getOutputStream();
      out.write(bytes);
      out.flush();
    } catch (IOException e) {
      // the reading thread will see that the client has gone
      untilGone(100, true);
    }
  }

  private static byte[] chunk(byte[] piece) {
    ByteArrayOutputStream chunk = new ByteArrayOutputStream();
    chunk.writeBytes(
        (Integer.toHexString(piece.length) + "\r\n").getBytes(StandardCharsets.US_ASCII));
    chunk.writeBytes(piece);
    chunk.writeBytes("\r\n".getBytes(StandardCharsets.US_ASCII));
    return chunk.toByteArray();
  }

  // -- reading a request (RFC 9112, as much of it as the JDK's client uses)

  private Received request() throws IOException {
    byte[] head = until("\r\n\r\n");
    if (head == null) {
      return null;
    }
    String[] lines = new String(head, StandardCharsets.ISO_8859_1).split("\r\n");
    String[] first = lines[0].split(" ");
    Map<String, String> headers = new TreeMap<>();
    for (int i = 1; i < lines.length; i++) {
      int colon = lines[i].indexOf(':');
      headers.put(
          lines[i].substring(0, colon).toLowerCase(Locale.ROOT),
          lines[i].substring(colon + 1).strip());
    }
    byte[] body = exactly(Integer.parseInt(headers.getOrDefault("content-length", "0")));
    return body == null ? null : new Received(first[0], first[1], headers, body, number);
  }

  private synchronized byte[] until(String mark) {
    while (true) {
      int at = new String(buffer, StandardCharsets.ISO_8859_1).indexOf(mark);
      if (at >= 0) {
        byte[] all = exactly(at + mark.length());
        return Arrays.copyOf(all, at);
      }
      if (!more()) {
        return null;
      }
    }
  }

  private synchronized byte[] exactly(int size) {
    while (buffer.length < size) {
      if (!more()) {
        return null;
      }
    }
    byte[] taken = Arrays.copyOf(buffer, size);
    buffer = Arrays.copyOfRange(buffer, size, buffer.length);
    return taken;
  }

  private synchronized boolean more() {
    try {
      int before = buffer.length;
      while (!gone && !over && buffer.length == before) {
        wait(50);
      }
      return buffer.length > before;
    } catch (InterruptedException e) {
      return false;
    }
  }
}
