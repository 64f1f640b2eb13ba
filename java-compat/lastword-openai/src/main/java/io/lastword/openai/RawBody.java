package io.lastword.openai;

import io.lastword.errors.LastwordException;
import io.lastword.transport.RawAnswer;
import java.io.IOException;
import java.io.InputStream;

/** The body of an answer of {@link JdkHttpClient}; any thread may close it. */
final class RawBody extends InputStream {

  private final RawAnswer answer;
  private byte[] piece = new byte[0];
  private int at;
  private boolean over;

  RawBody(RawAnswer answer) {
    this.answer = answer;
  }

  @Override
  public int read() throws IOException {
    byte[] one = new byte[1];
    return read(one, 0, 1) < 0 ? -1 : one[0] & 0xFF;
  }

  @Override
  public int read(byte[] target, int offset, int length) throws IOException {
    while (at == piece.length && !over && length > 0) {
      byte[] next;
      try {
        next = answer.read();
      } catch (LastwordException e) {
        over = true;
        throw new IOException(e.info().message(), e);
      }
      over = next == null;
      piece = next == null ? new byte[0] : next;
      at = 0;
    }
    if (at == piece.length) {
      return length == 0 ? 0 : -1;
    }
    int size = Math.min(length, piece.length - at);
    System.arraycopy(piece, at, target, offset, size);
    at += size;
    return size;
  }

  @Override
  public void close() {
    answer.close();
  }
}
