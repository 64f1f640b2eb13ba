package io.lastword;

import static io.lastword.Answers.HI;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.lastword.errors.ConnectionFailedException;
import io.lastword.scripted.SelfSigned;
import java.nio.file.Path;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;

/** A certificate that nobody trusts: the next attempt would meet it as well. */
@Timeout(60)
class UntrustedServerTest {

  @Test
  void itIsMetOnce(@TempDir Path folder) throws Exception {
    try (SelfSigned server = new SelfSigned(folder);
        LastwordClient client = LastwordClient.builder().baseUrl(server.baseUrl()).build()) {
      ConnectionFailedException error =
          assertThrows(
              ConnectionFailedException.class, () -> client.chat().completions().create(HI));
      assertTrue(error.getMessage().contains("is not trusted"), error.getMessage());
      assertFalse(error.retryable());
      assertEquals(1, error.attempts().size());
      assertEquals(1, server.connections());
    }
  }
}
