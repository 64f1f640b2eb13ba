package io.lastword.transport;

import java.io.IOException;
import java.io.InputStream;
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
  private @Nullable InputStream stream; // made late: gzip reads its header at once

  Inflated(Exchange exchange, boolean gzip) {
    this.exchange = exchange;
    this.gzip = gzip;
  }

  /** The next piece; null at the end of the body. */
  byte @Nullable [] read() throws IOException, Stopped {
    byte[] piece = new byte[SIZE];
    try {
      InputStream in = stream;
      if (in == null) {
        in = gzip ? new GZIPInputStream(new Raw(), SIZE) : new InflaterInputStream(new Raw());
        stream = in;
      }
      int size = in.read(piece);
      if (size >= 0) {
        return Arrays.copyOf(piece, size);
      }
    } catch (Tunnelled e) {
      throw e.stopped;
    }
    while (exchange.raw() != null) {
      // what follows the compressed bytes, and the body's own end
    }
    return null;
  }

  /** The compressed bytes, as the decoders of the JDK want to read them. */
  private final class Raw extends InputStream {
    private byte[] piece = new byte[0];
    private int at;

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
