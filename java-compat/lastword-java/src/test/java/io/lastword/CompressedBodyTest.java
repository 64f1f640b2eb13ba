package io.lastword;

import static io.lastword.Answers.HI;
import static io.lastword.Answers.TOO_LONG;
import static io.lastword.Answers.answer;
import static io.lastword.Answers.builder;
import static io.lastword.Answers.server;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.lastword.errors.ContextLengthExceededException;
import io.lastword.errors.StreamIncompleteException;
import io.lastword.scripted.ScriptedServer;
import java.io.ByteArrayInputStream;
import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.util.Arrays;
import java.util.Base64;
import java.util.List;
import java.util.Map;
import java.util.zip.DeflaterInputStream;
import java.util.zip.GZIPOutputStream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/** Bodies that a server compresses, whether or not it was asked to. */
@Timeout(30)
class CompressedBodyTest {

  @Test
  void aBodyThatCameCompressedIsReadAllTheSame() throws Exception {
    byte[] whole =
        gzip(
            "{\"choices\": [{\"index\": 0, \"message\": {\"content\": \"Hi\"}, \"finish_reason\": \"stop\"}]}");
    byte[] cut = Arrays.copyOf(whole, whole.length - 12);
    byte[] none = "no gzip at all".getBytes(StandardCharsets.UTF_8);
    String refusal = "{\"error\": {\"message\": \"" + TOO_LONG + "\", \"code\": 400}}";
    byte[] plain = refusal.getBytes(StandardCharsets.UTF_8);
    List<Map<String, Object>> exchanges =
        List.of(
            encoded(200, "gzip", whole),
            encoded(200, "gzip", cut),
            encoded(200, "gzip", none),
            encoded(200, "br", none),
            answer("Ho"),
            encoded(400, "identity, gzip", gzip(refusal)),
            encoded(400, "deflate", deflated(plain)),
            encoded(
                400, "gzip",
                plain), // as a gateway says that writes its own page over another's head
            encoded(400, "deflate", plain));
    try (ScriptedServer server = server(exchanges);
        LastwordClient client = builder(server).retry(RetryPolicy.never()).build()) {
      Endpoint<ChatRequest> chat = client.chat().completions();
      assertEquals("Hi", chat.create(HI).text());
      assertEquals(
          Codes.STREAM_INCOMPLETE,
          assertThrows(StreamIncompleteException.class, () -> chat.create(HI)).code());
      for (String part : List.of("cannot be decoded", "encoded as br")) {
        StreamIncompleteException error =
            assertThrows(StreamIncompleteException.class, () -> chat.create(HI));
        assertEquals(Codes.MALFORMED_RESPONSE, error.code());
        assertTrue(error.getMessage().contains(part), error.getMessage());
      }
      assertEquals("Ho", chat.create(HI).text());
      for (int i = 0; i < 4; i++) {
        ContextLengthExceededException refused =
            assertThrows(ContextLengthExceededException.class, () -> chat.create(HI));
        assertEquals(2048, refused.maxModelLen().getAsLong());
      }
    }
  }

  private static Map<String, Object> encoded(int status, String encoding, byte[] body) {
    Map<String, Object> headers =
        Map.of("content-encoding", encoding, "content-type", "application/json");
    Map<String, Object> step = Map.of("base64", Base64.getEncoder().encodeToString(body));
    return Map.of("status", status, "headers", headers, "steps", List.of(step));
  }

  private static byte[] deflated(byte[] bytes) throws IOException {
    return new DeflaterInputStream(new ByteArrayInputStream(bytes)).readAllBytes();
  }

  private static byte[] gzip(String text) throws IOException {
    ByteArrayOutputStream bytes = new ByteArrayOutputStream();
    try (GZIPOutputStream out = new GZIPOutputStream(bytes)) {
      out.write(text.getBytes(StandardCharsets.UTF_8));
    }
    return bytes.toByteArray();
  }
}
