package io.lastword.examples.springai;

import com.openai.client.OpenAIClient;
import com.openai.client.OpenAIClientImpl;
import com.openai.core.ClientOptions;
import io.lastword.openai.LastwordHttpClient;
import org.springframework.ai.openai.OpenAiChatModel;
import org.springframework.ai.openai.OpenAiChatOptions;

/**
 * Spring AI's chat model on lastword: {@code stream} ends in {@code onError} if the answer is not
 * whole, and an error says what it is.
 *
 * <pre>{@code
 * OpenAIClient client = LastwordChatModels.client("http://127.0.0.1:8000/v1", "k");
 * OpenAiChatOptions options = OpenAiChatOptions.builder().model("m").timeout(Duration.ofMinutes(10)).build();
 * ChatModel model = LastwordChatModels.model(client, options);
 * }</pre>
 *
 * <ul>
 *   <li>What is thrown is openai-java's, as Spring AI hands it on: out of {@code stream} in a
 *       {@code CompletionException}. {@link io.lastword.openai.LastwordErrors#of} has the
 *       contract's exception for either.
 *   <li>Retries are openai-java's, by the contract's rules. Spring AI has none of its own, so put
 *       none around the model.
 *   <li>The options of a connection ({@code baseUrl}, {@code apiKey}, {@code maxRetries}) are not
 *       looked at, since the client has them. {@code timeout} is: it limits an attempt as a whole,
 *       streams too, and is a minute if none is given.
 *   <li>Whoever cancels a stream while it is silent waits with openai-java for the next chunk, or
 *       for lastword's limit of silence; {@code
 *       stream(prompt).cancelOn(Schedulers.boundedElastic())} lets another thread wait.
 * </ul>
 */
public final class LastwordChatModels {

  private LastwordChatModels() {}

  /**
   * openai-java over lastword. It is yours to close, and one is enough for any number of models.
   */
  public static OpenAIClient client(String baseUrl, String apiKey) {
    return new OpenAIClientImpl(
        ClientOptions.builder()
            .httpClient(LastwordHttpClient.create())
            .baseUrl(baseUrl)
            .apiKey(apiKey)
            .build());
  }

  /**
   * A model; {@code call} goes by the client, and {@code stream} by its asynchronous side, over the
   * same connections.
   */
  public static OpenAiChatModel model(OpenAIClient client, OpenAiChatOptions options) {
    return OpenAiChatModel.builder()
        .openAiClient(client)
        .openAiClientAsync(client.async())
        .options(options)
        .build();
  }
}
