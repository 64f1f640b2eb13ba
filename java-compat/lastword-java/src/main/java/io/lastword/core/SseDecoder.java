package io.lastword.core;

import java.io.ByteArrayOutputStream;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.List;

/**
 * Server-sent events out of bytes that may be cut anywhere.
 *
 * <p>The grammar is WHATWG HTML §9.2.6: lines end in LF, CR or CRLF, one leading BOM is dropped,
 * {@code :} starts a comment, {@code data} lines are joined with LF, a block without {@code data}
 * is no event, and a block that the body's end cuts off is discarded. Two things are ours: the size
 * of an event is limited (SSE-9), and {@link #pending} tells that the end cut a block off. Nothing
 * here throws. Not for several threads.
 */
public final class SseDecoder {

  /** The largest event accepted by default, in bytes of its lines together. */
  public static final int MAX_EVENT_BYTES = 16 * 1024 * 1024;

  private static final byte[] BOM = {(byte) 0xEF, (byte) 0xBB, (byte) 0xBF};

  private final int maxEventBytes;
  // whose end has not come yet
  private final ByteArrayOutputStream line = new ByteArrayOutputStream();
  private final ByteArrayOutputStream data = new ByteArrayOutputStream();
  private boolean hasData;
  private long dataSize; // bytes of the data lines, names included
  private String name = "";
  private int bomSeen; // how much of a BOM the body began with; -1 once that is decided
  private boolean skipLineFeed; // a CR was the last byte; an LF that comes now belongs to it
  private boolean tooLarge;

  /** A decoder with {@link #MAX_EVENT_BYTES}. */
  public SseDecoder() {
    this(MAX_EVENT_BYTES);
  }

  /** A decoder that gives up at an event of more than {@code maxEventBytes} bytes. */
  SseDecoder(int maxEventBytes) {
    this.maxEventBytes = maxEventBytes;
  }

  /**
   * Whether an event outgrew the limit; everything after it is ignored, and the events before it
   * have been returned.
   */
  public boolean tooLarge() {
    return tooLarge;
  }

  /** Whether part of an event is held that no blank line has ended yet. */
  public boolean pending() {
    return hasData || !name.isEmpty() || line.size() > 0 || bomSeen > 0;
  }

  /** The events that {@code chunk} completes, in order. */
  public List<ServerSentEvent> feed(byte[] chunk) {
    List<ServerSentEvent> events = new ArrayList<>();
    int at = bomSeen >= 0 ? skipBom(chunk) : 0;
    while (at < chunk.length && !tooLarge) {
      if (skipLineFeed) {
        skipLineFeed = false;
        if (chunk[at] == '\n') {
          at++;
          continue;
        }
      }
      int end = at;
      while (end < chunk.length && chunk[end] != '\n' && chunk[end] != '\r') {
        end++;
      }
      if (dataSize + line.size() + (end - at) > maxEventBytes) {
        overflow();
        break;
      }
      if (end == chunk.length) {
        line.write(chunk, at, end - at);
        break;
      }
      if (line.size() > 0) {
        line.write(chunk, at, end - at);
        take(line.toByteArray(), 0, line.size(), events);
        line.reset();
      } else {
        take(chunk, at, end, events);
      }
      skipLineFeed = chunk[end] == '\r';
      at = end + 1;
    }
    return events;
  }

  /**
   * How many bytes of the chunk are a BOM at the body's start; what looked like one and is none
   * goes into the line.
   */
  private int skipBom(byte[] chunk) {
    int at = 0;
    while (at < chunk.length && bomSeen < BOM.length && chunk[at] == BOM[bomSeen]) {
      at++;
      bomSeen++;
    }
    if (bomSeen == BOM.length) {
      bomSeen = -1;
    } else if (at < chunk.length) {
      line.write(BOM, 0, bomSeen);
      bomSeen = -1;
    }
    return at;
  }

  private void overflow() {
    tooLarge = true;
    line.reset();
    data.reset();
    hasData = false;
  }

  private void take(byte[] bytes, int from, int to, List<ServerSentEvent> events) {
    if (from == to) {
      if (hasData) {
        events.add(new ServerSentEvent(data.toString(StandardCharsets.UTF_8), name));
      }
      data.reset();
      hasData = false;
      dataSize = 0;
      name = "";
      return;
    }
    int colon = from;
    while (colon < to && bytes[colon] != ':') {
      colon++;
    }
    int value = Math.min(colon + 1, to);
    if (value < to && bytes[value] == ' ') {
      value++;
    }
    if (is("data", bytes, from, colon)) {
      if (hasData) {
        data.write('\n');
      }
      data.write(bytes, value, to - value);
      hasData = true;
      dataSize += to - from;
    } else if (is("event", bytes, from, colon)) {
      name = new String(bytes, value, to - value, StandardCharsets.UTF_8);
    } // a comment has no name; id and retry mean nothing here
  }

  private static boolean is(String field, byte[] bytes, int from, int to) {
    if (to - from != field.length()) {
      return false;
    }
    for (int i = 0; i < field.length(); i++) {
      if (bytes[from + i] != field.charAt(i)) {
        return false;
      }
    }
    return true;
  }
}
