package io.lastword.openai;

import static io.lastword.openai.OpenAi.HI;
import static io.lastword.openai.OpenAi.client;
import static io.lastword.openai.OpenAi.http;
import static io.lastword.openai.OpenAi.lastword;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;

import com.openai.client.OpenAIClient;
import io.lastword.Codes;
import io.lastword.scripted.SelfSigned;
import java.nio.file.Path;
import java.util.concurrent.CompletionException;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** A certificate that nobody trusts: the next attempt would meet it as well. */
@Timeout(60)
class UntrustedServerTest {

  @ParameterizedTest
  @ValueSource(strings = {"jdk", "okhttp"})
  void itIsMetOnce(String kind, @TempDir Path folder) throws Exception {
    try (SelfSigned server = new SelfSigned(folder)) {
      OpenAIClient client = client(server.baseUrl(), http(kind), 2);
      LastwordOpenAIException error =
          assertThrows(LastwordOpenAIException.class, () -> client.chat().completions().create(HI));
      assertEquals(Codes.CONNECTION_FAILED, error.error().code());
      assertFalse(error.error().retryable());
      assertEquals(1, server.connections());
      CompletionException later =
          assertThrows(
              CompletionException.class,
              () -> client.async().chat().completions().create(HI).join());
      assertFalse(lastword(later).retryable());
      assertEquals(2, server.connections());
      client.close();
    }
  }
}
