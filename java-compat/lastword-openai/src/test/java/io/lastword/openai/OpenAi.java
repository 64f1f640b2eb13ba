package io.lastword.openai;

import com.openai.client.OpenAIClient;
import com.openai.client.OpenAIClientImpl;
import com.openai.client.okhttp.OkHttpClient;
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

  /** The decorator: on the JDK's client, {@code jdk}, or around OkHttp. */
  static LastwordHttpClient http(String kind) {
    return kind.equals("jdk")
        ? LastwordHttpClient.create()
        : LastwordHttpClient.around(OkHttpClient.builder().build());
  }

  /** The contract's exception for what openai-java threw. */
  static LastwordException lastword(Throwable thrown) {
    return LastwordErrors.of(thrown).orElseThrow(() -> new AssertionError(thrown));
  }
}
