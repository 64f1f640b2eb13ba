package io.lastword.examples;

import io.lastword.AnswerStream;
import io.lastword.ChatRequest;
import io.lastword.Chunk;
import io.lastword.LastwordClient;
import io.lastword.errors.ContextLengthExceededException;

/** The example of the README: asks for more than fits, and then for what does. */
public final class Ask {

  private Ask() {}

  public static void main(String[] arguments) {
    try (LastwordClient client = LastwordClient.builder().baseUrl(arguments[0]).build()) {
      String model = client.models().get(0).id();
      int tokens = 1_000_000;
      try {
        client
            .chat()
            .completions()
            .create(
                ChatRequest.builder()
                    .model(model)
                    .user("Tell me a story.")
                    .maxTokens(tokens)
                    .build());
      } catch (ContextLengthExceededException e) {
        System.out.println(e.getMessage());
        System.out.println(e.details());
        tokens = 32;
      }
      ChatRequest fits =
          ChatRequest.builder().model(model).user("Tell me a story.").maxTokens(tokens).build();
      try (AnswerStream stream = client.chat().completions().createStreaming(fits)) {
        for (Chunk chunk : stream) {
          System.out.print(chunk.text());
        }
        System.out.println("\n" + stream.outcome().name() + " " + stream.outcome().finishReasons());
      }
    }
  }
}
