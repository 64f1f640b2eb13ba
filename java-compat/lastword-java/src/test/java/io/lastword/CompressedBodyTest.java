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
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Base64;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.zip.DeflaterInputStream;
import java.util.zip.GZIPOutputStream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;

/** Bodies that a server compresses, whether or not it was asked to. */
@Timeout(30)
class CompressedBodyTest {

  private static final String WHOLE =
      "{\"choices\": [{\"index\": 0, \"message\": {\"content\": \"Hi\"}, \"finish_reason\": \"stop\"}]}";
  private static final String CHUNK =
      "data: {\"choices\": [{\"index\": 0, \"delta\": {\"content\": \"Hi\"}}]}\n\n";
  private static final String REFUSAL =
      "{\"error\": {\"message\": \"" + TOO_LONG + "\", \"code\": 400}}";

  @Test
  void aBodyThatCameCompressedIsReadAllTheSame() throws Exception {
    List<Map<String, Object>> exchanges = List.of(encoded(200, "gzip", gzip(WHOLE)), answer("Ho"));
    try (ScriptedServer server = server(exchanges);
        LastwordClient client = builder(server).retry(RetryPolicy.never()).build()) {
      Endpoint<ChatRequest> chat = client.chat().completions();
      assertEquals("Hi", chat.create(HI).text());
      assertEquals("Ho", chat.create(HI).text());
    }
  }

  /** RFC 1952 §2.2; and the members come apart. */
  @Test
  void severalMembersAreOneBody() throws Exception {
    Map<String, Object> whole = encoded(200, "gzip", gzip(WHOLE.substring(0, 20)));
    List<Object> steps = new ArrayList<>((List<?>) whole.get("steps"));
    steps.add(Map.of("delay_ms", 100));
    steps.addAll((List<?>) encoded(200, "gzip", gzip(WHOLE.substring(20))).get("steps"));
    Map<String, Object> exchange = new HashMap<>(whole);
    exchange.put("steps", steps);
    try (ScriptedServer server = server(List.of(exchange));
        LastwordClient client = builder(server).retry(RetryPolicy.never()).build()) {
      assertEquals("Hi", client.chat().completions().create(HI).text());
    }
  }

  @Test
  void oneThatIsCutIsNotWhole() throws Exception {
    byte[] whole = gzip(WHOLE);
    byte[] cut = Arrays.copyOf(whole, whole.length - 12);
    StreamIncompleteException error = incomplete(encoded(200, "gzip", cut));
    assertEquals(Codes.STREAM_INCOMPLETE, error.code());
  }

  /** The JDK's decoder looks for another member there, and swallows what it meets. */
  @ParameterizedTest
  @ValueSource(strings = {"truncate", "reset"})
  void aConnectionThatEndsBehindTheLastMemberIsNoWholeBody(String end) throws Exception {
    StreamIncompleteException whole = incomplete(endingIn(end, encoded(200, "gzip", gzip(WHOLE))));
    assertEquals(Codes.STREAM_INCOMPLETE, whole.code());
    Map<String, Object> stream = new HashMap<>(encoded(200, "gzip", gzip(CHUNK)));
    stream.put("headers", Map.of("content-encoding", "gzip", "content-type", "text/event-stream"));
    try (ScriptedServer server = server(List.of(endingIn(end, stream)));
        LastwordClient client = builder(server).retry(RetryPolicy.never()).build();
        AnswerStream answer = client.chat().completions().createStreaming(HI)) {
      assertEquals("Hi", answer.next().text());
      assertEquals(
          Codes.STREAM_INCOMPLETE,
          assertThrows(StreamIncompleteException.class, answer::hasNext).code());
    }
  }

  private static Map<String, Object> endingIn(String end, Map<String, Object> exchange) {
    List<Object> steps = new ArrayList<>((List<?>) exchange.get("steps"));
    steps.add(Map.of("delay_ms", 100));
    steps.add(Map.of("end", end));
    Map<String, Object> cut = new HashMap<>(exchange);
    cut.put("steps", steps);
    return cut;
  }

  @ParameterizedTest
  @CsvSource({"gzip, cannot be decoded", "br, encoded as br"})
  void oneThatIsNotWhatItIsSaidToBeIsMalformed(String encoding, String told) throws Exception {
    byte[] none = "no gzip at all".getBytes(StandardCharsets.UTF_8);
    StreamIncompleteException error = incomplete(encoded(200, encoding, none));
    assertEquals(Codes.MALFORMED_RESPONSE, error.code());
    assertTrue(error.getMessage().contains(told), error.getMessage());
  }

  /** A gateway writes its own page over another's head: then a plain body is said to be gzip. */
  @Test
  void aRefusalIsReadAsFarAsItCanBe() throws Exception {
    byte[] plain = REFUSAL.getBytes(StandardCharsets.UTF_8);
    List<Map<String, Object>> refusals =
        List.of(
            encoded(400, "identity, gzip", gzip(REFUSAL)),
            encoded(400, "deflate", deflated(plain)),
            encoded(400, "gzip", plain),
            encoded(400, "deflate", plain));
    try (ScriptedServer server = server(refusals);
        LastwordClient client = builder(server).retry(RetryPolicy.never()).build()) {
      for (int i = 0; i < refusals.size(); i++) {
        ContextLengthExceededException refused =
            assertThrows(
                ContextLengthExceededException.class, () -> client.chat().completions().create(HI));
        assertEquals(2048, refused.maxModelLen().getAsLong());
      }
    }
  }

  /** What an exchange throws; the client goes on with the next. */
  private static StreamIncompleteException incomplete(Map<String, Object> exchange)
      throws Exception {
    try (ScriptedServer server = server(List.of(exchange, answer("Ho")));
        LastwordClient client = builder(server).retry(RetryPolicy.never()).build()) {
      Endpoint<ChatRequest> chat = client.chat().completions();
      StreamIncompleteException error =
          assertThrows(StreamIncompleteException.class, () -> chat.create(HI));
      assertEquals("Ho", chat.create(HI).text());
      return error;
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
