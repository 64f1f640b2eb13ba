package io.lastword.openai;

import com.openai.core.http.Headers;
import com.openai.core.http.HttpResponse;
import io.lastword.core.ResponseHead;
import java.io.ByteArrayInputStream;
import java.io.IOException;
import java.io.InputStream;
import java.io.UncheckedIOException;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;

/** A response with another body than the one that came. */
record Answer(int statusCode, Headers headers, InputStream body) implements HttpResponse {

  Answer(int statusCode, Headers headers, byte[] body) {
    this(statusCode, headers, new ByteArrayInputStream(body));
  }

  /** The head of an answer as the core reads it. */
  static ResponseHead head(int status, Headers headers) {
    Map<String, List<String>> fields = new LinkedHashMap<>();
    headers.names().forEach(name -> fields.put(name, headers.values(name)));
    return ResponseHead.of(status, fields);
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
