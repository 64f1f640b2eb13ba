package io.lastword.openai;

import static io.lastword.Answers.server;
import static io.lastword.Answers.silence;
import static io.lastword.Answers.stream;
import static org.junit.jupiter.api.Assertions.assertEquals;

import com.openai.client.OpenAIClient;
import com.openai.client.OpenAIClientImpl;
import com.openai.core.ClientOptions;
import com.openai.models.chat.completions.ChatCompletionCreateParams;
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
      ClientOptions options =
          ClientOptions.builder()
              .httpClient(LastwordHttpClient.create())
              .baseUrl(arguments[0])
              .apiKey("k")
              .build();
      OpenAIClient client = new OpenAIClientImpl(options);
      ChatCompletionCreateParams hi =
          ChatCompletionCreateParams.builder().model("m").addUserMessage("hi").build();
      client.chat().completions().createStreaming(hi).stream().findFirst().orElseThrow();
    }
  }
}
