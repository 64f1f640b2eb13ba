package io.lastword.peers.langchain4j;

import dev.langchain4j.model.openai.OpenAiChatModel;
import io.lastword.conformance.Adapter;
import io.lastword.conformance.Case;
import io.lastword.conformance.Main;
import java.io.IOException;
import java.io.InputStream;
import java.io.UncheckedIOException;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Properties;

/** LangChain4j's OpenAI models as they come, over the JDK's HTTP client. */
public final class LangChain4jAdapter implements Adapter {

  private static final List<String> CAPABILITIES =
      List.of("cancel", "completions", "connect", "models", "tools");
  private static final String NOTE =
      "The first of onError and onCompleteResponse counts; codes are the HttpException's status, else the exception's class.";
  private static final String POM =
      "/META-INF/maven/dev.langchain4j/langchain4j-open-ai/pom.properties";

  private final boolean retries;

  private LangChain4jAdapter(boolean retries) {
    this.retries = retries;
  }

  /**
   * With the argument {@code retry} it declares that capability, which the models without streams
   * have.
   */
  public static void main(String[] arguments) throws IOException {
    Main.run(new LangChain4jAdapter(List.of(arguments).contains("retry")));
  }

  @Override
  public About about() {
    List<String> has = new ArrayList<>(CAPABILITIES);
    if (retries) {
      has.add("retry");
    }
    return new About("langchain4j", version(), has, NOTE);
  }

  /** Its manifest has none. */
  private static String version() {
    Properties properties = new Properties();
    try (InputStream maven = OpenAiChatModel.class.getResourceAsStream(POM)) {
      properties.load(maven);
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    }
    return properties.getProperty("version");
  }

  @Override
  public Map<String, Object> run(Case given) throws Exception {
    ModelCall call = ModelCall.of(given);
    return given.repeated(() -> new ModelCaller(given).make(call));
  }
}
