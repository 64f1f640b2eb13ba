package io.lastword.openai;

import static io.lastword.Answers.server;
import static io.lastword.Answers.silence;
import static io.lastword.Answers.stream;
import static io.lastword.openai.OpenAi.HI;
import static io.lastword.openai.OpenAi.client;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import com.openai.client.OpenAIClient;
import io.lastword.scripted.ScriptedServer;
import java.nio.file.Path;
import java.util.List;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/** When {@code main} returns, the JVM exits, also with a stream that nobody closed. */
@Timeout(60)
class JvmExitTest {

  @Test
  void theProcessExits() throws Exception {
    try (ScriptedServer server = server(List.of(stream(silence(), "a")))) {
      String java = Path.of(System.getProperty("java.home"), "bin", "java").toString();
      String classPath = System.getProperty("java.class.path");
      Process process =
          new ProcessBuilder(java, "-cp", classPath, Child.class.getName(), server.baseUrl())
              .redirectOutput(ProcessBuilder.Redirect.INHERIT)
              .redirectErrorStream(true)
              .start();
      boolean exited = process.waitFor(20, TimeUnit.SECONDS);
      process.destroyForcibly();
      assertTrue(exited, "main has returned, and the process is still there");
      assertEquals(0, process.exitValue());
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
