package io.lastword.openai;

import com.openai.client.OpenAIClient;
import com.openai.client.OpenAIClientImpl;
import com.openai.core.ClientOptions;
import com.openai.core.http.HttpClient;
import com.openai.models.chat.completions.ChatCompletionCreateParams;
import io.lastword.errors.LastwordException;

/** openai-java as these tests set it up and call it. */
final class OpenAi {

  static final ChatCompletionCreateParams HI =
      ChatCompletionCreateParams.builder().model("m").addUserMessage("hi").build();

  private OpenAi() {}

  static OpenAIClient client(String baseUrl, HttpClient http, int retries) {
    ClientOptions options =
        ClientOptions.builder()
            .httpClient(http)
            .baseUrl(baseUrl)
            .apiKey("k")
            .maxRetries(retries)
            .build();
    return new OpenAIClientImpl(options);
  }

  /** The contract's exception for what openai-java threw. */
  static LastwordException lastword(Throwable thrown) {
    return LastwordErrors.of(thrown).orElseThrow(() -> new AssertionError(thrown));
  }
}
