package io.lastword.openai;

import static io.lastword.Answers.server;
import static io.lastword.Answers.silence;
import static io.lastword.Answers.stream;
import static io.lastword.openai.OpenAi.HI;
import static io.lastword.openai.OpenAi.client;
import static org.junit.jupiter.api.Assertions.assertEquals;

import com.openai.client.OpenAIClient;
import io.lastword.scripted.ChildJvm;
import io.lastword.scripted.ScriptedServer;
import java.util.List;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/** When {@code main} returns, the JVM exits, also with a stream that nobody closed. */
@Timeout(60)
class JvmExitTest {

  @Test
  void theProcessExits() throws Exception {
    try (ScriptedServer server = server(List.of(stream(silence(), "a")));
        ChildJvm child = new ChildJvm(Child.class, List.of(), server.baseUrl())) {
      assertEquals("0", child.exit(20));
      assertEquals(1, server.requests().size());
    }
  }

  /** What the process runs. */
  static final class Child {
    public static void main(String[] arguments) {
      OpenAIClient client = client(arguments[0], LastwordHttpClient.create(), 0);
      client.chat().completions().createStreaming(HI).stream().findFirst().orElseThrow();
    }
  }
}
