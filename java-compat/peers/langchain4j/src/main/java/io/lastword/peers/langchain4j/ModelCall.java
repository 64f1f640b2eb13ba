package io.lastword.peers.langchain4j;

import dev.langchain4j.data.message.ChatMessage;
import dev.langchain4j.data.message.UserMessage;
import dev.langchain4j.model.chat.request.ChatRequest;
import dev.langchain4j.model.openai.OpenAiChatModel;
import dev.langchain4j.model.openai.OpenAiLanguageModel;
import dev.langchain4j.model.openai.OpenAiModelCatalog;
import dev.langchain4j.model.openai.OpenAiStreamingChatModel;
import dev.langchain4j.model.openai.OpenAiStreamingLanguageModel;
import io.lastword.conformance.Adapter.Unable;
import io.lastword.conformance.Case;
import java.time.Duration;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import org.jspecify.annotations.Nullable;

/** A call by one of LangChain4j's five OpenAI models, which is built already. */
interface ModelCall {

  /** Make it; the caller is told of what comes. */
  void begin(ModelCaller caller) throws Exception;

  static ModelCall of(Case given) throws Unable {
    return switch (given.endpoint()) {
      case "models" -> models(given);
      case "completions" -> completions(given);
      default -> chat(given);
    };
  }

  private static ModelCall models(Case given) {
    OpenAiModelCatalog catalog =
        OpenAiModelCatalog.builder()
            .baseUrl(given.baseUrl())
            .apiKey(given.apiKey())
            .connectTimeout(limit(given))
            .build();
    return caller -> {
      catalog.listModels();
      caller.completed();
    };
  }

  private static ModelCall completions(Case given) throws Unable {
    if (!(given.request().get("prompt") instanceof String prompt)) {
      throw new Unable("a prompt is one text");
    }
    String name = (String) given.request().get("model");
    if (given.stream()) {
      OpenAiStreamingLanguageModel model =
          OpenAiStreamingLanguageModel.builder()
              .baseUrl(given.baseUrl())
              .apiKey(given.apiKey())
              .modelName(name)
              .timeout(limit(given))
              .build();
      return caller -> model.generate(prompt, caller.texts());
    }
    OpenAiLanguageModel model =
        OpenAiLanguageModel.builder()
            .baseUrl(given.baseUrl())
            .apiKey(given.apiKey())
            .modelName(name)
            .timeout(limit(given))
            .maxRetries(given.retries())
            .build();
    return caller -> caller.completed(model.generate(prompt));
  }

  private static ModelCall chat(Case given) throws Unable {
    List<ChatMessage> messages = new ArrayList<>();
    given.userTexts().forEach(text -> messages.add(UserMessage.from(text)));
    ChatRequest request = ChatRequest.builder().messages(messages).build();
    Map<String, Object> more = new HashMap<>(given.request());
    String name = (String) more.remove("model");
    more.remove("messages");
    if (given.stream()) {
      OpenAiStreamingChatModel model =
          OpenAiStreamingChatModel.builder()
              .baseUrl(given.baseUrl())
              .apiKey(given.apiKey())
              .modelName(name)
              .customParameters(more)
              .timeout(limit(given))
              .build();
      return caller -> model.chat(request, caller);
    }
    OpenAiChatModel model =
        OpenAiChatModel.builder()
            .baseUrl(given.baseUrl())
            .apiKey(given.apiKey())
            .modelName(name)
            .customParameters(more)
            .timeout(limit(given))
            .maxRetries(given.retries())
            .build();
    return caller -> caller.onCompleteResponse(model.chat(request));
  }

  /** The library has one limit, for connecting and for the head of the answer. */
  private static @Nullable Duration limit(Case given) {
    return given.timeout("connect", null);
  }
}
