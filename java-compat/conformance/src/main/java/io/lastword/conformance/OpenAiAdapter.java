package io.lastword.conformance;

import com.openai.client.OpenAIClient;
import com.openai.client.OpenAIClientImpl;
import com.openai.client.okhttp.OkHttpClient;
import com.openai.core.ClientOptions;
import com.openai.core.Timeout;
import io.lastword.Timeouts;
import io.lastword.openai.LastwordErrors;
import io.lastword.openai.LastwordHttpClient;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;

/** openai-java's blocking client over OkHttp: as it is, or with lastword's decorator. */
public final class OpenAiAdapter implements Adapter {

  private static final Duration LONG = Duration.ofMinutes(10);

  private final boolean decorated;

  OpenAiAdapter(boolean decorated) {
    this.decorated = decorated;
  }

  @Override
  public About about() {
    String version = String.valueOf(OpenAIClientImpl.class.getPackage().getImplementationVersion());
    List<String> has =
        new ArrayList<>(
            List.of("cancel", "choices", "completions", "connect", "models", "retry", "tools"));
    if (!decorated) {
      String note =
          "Over OkHttp. Codes are e.code(), where it does not throw, else the HTTP status, else the exception's class.";
      return new About("openai-java", version, has, note);
    }
    has.addAll(List.of("first_token", "headers", "idle"));
    return new About(
        "openai-java with lastword",
        version,
        has,
        "On LastwordHttpClient; codes as LastwordErrors gives them.");
  }

  @Override
  public Map<String, Object> run(Case given) throws Exception {
    OpenAIClient client = client(given);
    try {
      return given.repeated(() -> new OpenAiCall(client, given).make(this::report));
    } finally {
      client.close();
    }
  }

  private OpenAIClient client(Case given) {
    Duration connect = given.timeout("connect", Duration.ofMinutes(1));
    Duration total = given.timeout("total", LONG);
    Timeout limits =
        Timeout.builder()
            .connect(connect == null ? LONG : connect)
            .read(LONG)
            .request(total == null ? LONG : total)
            .build();
    Timeouts silence =
        Timeouts.none()
            .withFirstToken(given.timeout("first_token", LONG))
            .withIdle(given.timeout("idle", LONG));
    ClientOptions options =
        ClientOptions.builder()
            .httpClient(
                decorated
                    ? LastwordHttpClient.create(silence)
                    : OkHttpClient.builder().timeout(limits).build())
            .baseUrl(given.baseUrl())
            .apiKey(given.apiKey())
            .maxRetries(given.retries())
            .timeout(limits)
            .build();
    return new OpenAIClientImpl(options);
  }

  private Map<String, Object> report(RuntimeException thrown) {
    if (!decorated) {
      return OpenAiErrors.report(thrown);
    }
    return LastwordErrors.of(thrown).map(Report::failed).orElseThrow(() -> thrown);
  }
}
