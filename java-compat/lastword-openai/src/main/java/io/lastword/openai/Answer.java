package io.lastword.openai;

import com.openai.core.http.Headers;
import com.openai.core.http.HttpResponse;
import java.io.ByteArrayInputStream;
import java.io.IOException;
import java.io.InputStream;
import java.io.UncheckedIOException;

/** A response with another body than the one that came. */
record Answer(int statusCode, Headers headers, InputStream body) implements HttpResponse {

  Answer(int statusCode, Headers headers, byte[] body) {
    this(statusCode, headers, new ByteArrayInputStream(body));
  }

  @Override
  public void close() {
    try {
      body.close();
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    }
  }
}
