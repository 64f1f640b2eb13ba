package io.lastword.transport;

import java.io.IOException;
import java.io.InputStream;
import java.io.PushbackInputStream;
import java.util.Arrays;
import java.util.zip.GZIPInputStream;
import java.util.zip.InflaterInputStream;
import org.jspecify.annotations.Nullable;

/**
 * A body that came compressed although {@code identity} was asked for, as some gateways send it, in
 * the pieces that its bytes become.
 */
final class Inflated {

  private static final int SIZE = 16 * 1024;

  private final Exchange exchange;
  private final boolean gzip;
  private final boolean mayBePlain;
  private @Nullable InputStream stream; // made late: gzip reads its header at once

  /** {@code mayBePlain}: bytes that are not what the head says of them are given as they are. */
  Inflated(Exchange exchange, boolean gzip, boolean mayBePlain) {
    this.exchange = exchange;
    this.gzip = gzip;
    this.mayBePlain = mayBePlain;
  }

  /** The next piece; null at the end of the body. */
  byte @Nullable [] read() throws IOException, Stopped {
    byte[] piece = new byte[SIZE];
    try {
      InputStream in = stream;
      if (in == null) {
        in = begin();
        stream = in;
      }
      int size = in.read(piece);
      if (size >= 0) {
        return Arrays.copyOf(piece, size);
      }
      in.close();
    } catch (Tunnelled e) {
      throw e.stopped;
    }
    stream = InputStream.nullInputStream();
    while (exchange.raw() != null) {
      // what follows the compressed bytes, and the body's own end
    }
    return null;
  }

  private InputStream begin() throws IOException {
    PushbackInputStream raw = new PushbackInputStream(new Raw(), 2);
    byte[] head = raw.readNBytes(2);
    raw.unread(head);
    if (mayBePlain && !packed(head)) {
      return raw;
    }
    return gzip ? new GZIPInputStream(raw, SIZE) : new InflaterInputStream(raw);
  }

  /** Whether bytes begin so that are packed (RFC 1952 §2.3.1, RFC 1950 §2.2). */
  private boolean packed(byte[] head) {
    int word = head.length < 2 ? 0 : (head[0] & 0xff) << 8 | head[1] & 0xff;
    return gzip ? word == 0x1f8b : (word & 0x0f00) == 0x0800 && word % 31 == 0;
  }

  /** The compressed bytes, as the decoders of the JDK want to read them. */
  private final class Raw extends InputStream {
    private byte[] piece = new byte[0];
    private int at;
    private boolean ended;

    /** More may always come: gzip asks before it looks for a further member (RFC 1952 §2.2). */
    @Override
    public int available() {
      return ended ? 0 : 1;
    }

    @Override
    public int read() throws IOException {
      byte[] one = new byte[1];
      return read(one, 0, 1) < 0 ? -1 : one[0] & 0xFF;
    }

    @Override
    public int read(byte[] target, int offset, int length) throws IOException {
      while (at == piece.length && length > 0) {
        byte[] next;
        try {
          next = exchange.raw();
        } catch (Stopped e) {
          throw new Tunnelled(e);
        }
        if (next == null) {
          ended = true;
          return -1;
        }
        piece = next;
        at = 0;
      }
      int size = Math.min(length, piece.length - at);
      System.arraycopy(piece, at, target, offset, size);
      at += size;
      return size;
    }
  }

  private static final class Tunnelled extends IOException {
    private static final long serialVersionUID = 1L;

    private final transient Stopped stopped;

    Tunnelled(Stopped stopped) {
      this.stopped = stopped;
    }
  }
}
