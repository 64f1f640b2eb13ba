package io.lastword;

import io.lastword.core.Json;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import org.jspecify.annotations.Nullable;

/** A request to {@code /chat/completions}. */
public final class ChatRequest extends Request {

  private ChatRequest(Builder builder) {
    super(builder);
  }

  /** An empty one; it needs a model and a message. */
  public static Builder builder() {
    return new Builder();
  }

  /** Collects what to send. */
  public static final class Builder extends Request.Builder<Builder> {
    private final List<Map<String, @Nullable Object>> messages = new ArrayList<>();

    private Builder() {}

    @Override
    Builder self() {
      return this;
    }

    /** One more message, of the system. */
    public Builder system(String content) {
      return message("system", content);
    }

    /** One more message, of the user. */
    public Builder user(String content) {
      return message("user", content);
    }

    /** One more message, that the model said before. */
    public Builder assistant(String content) {
      return message("assistant", content);
    }

    /**
     * One more message: what choice 0 of an answer said, with the tools that it called. Their
     * results follow, by {@link #tool}. Of a stream the answer is {@code outcome().orThrow()}.
     *
     * @throws IllegalArgumentException if a call has no id that a result could name
     */
    public Builder assistant(Completed answer) {
      Map<String, @Nullable Object> message = new LinkedHashMap<>();
      List<Object> calls =
          answer.toolCalls().stream().filter(it -> it.choice() == 0).map(Builder::asSent).toList();
      message.put("role", "assistant");
      message.put("content", answer.text().isEmpty() && !calls.isEmpty() ? null : answer.text());
      if (!calls.isEmpty()) {
        message.put("tool_calls", calls);
      }
      return message(message);
    }

    private static Object asSent(ToolCall call) {
      String id = call.id();
      if (id == null) {
        throw new IllegalArgumentException(
            "answer: its call of "
                + call.name()
                + " has no id; use message(Map) as the server wants it");
      }
      Map<String, Object> function = Map.of("name", call.name(), "arguments", call.rawArguments());
      return Map.of("id", id, "type", "function", "function", function);
    }

    /**
     * The result of a tool call, by the call's {@link ToolCall#id}. Servers want it behind the
     * answer that called the tool ({@link #assistant(Completed)}).
     */
    public Builder tool(String toolCallId, String content) {
      Objects.requireNonNull(toolCallId, "toolCallId");
      Objects.requireNonNull(content, "content");
      return message(Map.of("role", "tool", "tool_call_id", toolCallId, "content", content));
    }

    /** One more message. */
    public Builder message(String role, String content) {
      Objects.requireNonNull(role, "role");
      Objects.requireNonNull(content, "content of the message of role " + role);
      return message(Map.of("role", role, "content", content));
    }

    /** One more message, with whatever members the server knows; it is copied. */
    public Builder message(Map<String, ? extends @Nullable Object> message) {
      messages.add(Json.frozen(Objects.requireNonNull(message, "message")));
      return this;
    }

    /**
     * The request.
     *
     * @throws IllegalArgumentException without a message, or with messages from two sides
     */
    public ChatRequest build() {
      if (messages.isEmpty() != has("messages")) {
        throw new IllegalArgumentException(
            messages.isEmpty()
                ? "messages: a chat needs one; add it, as with user(text)"
                : "messages: given by set and by methods such as user(text); use one of the two");
      }
      if (messages.isEmpty()) {
        return new ChatRequest(this);
      }
      body.put("messages", List.copyOf(messages));
      try {
        return new ChatRequest(this);
      } finally {
        body.remove("messages"); // for the next that is built
      }
    }
  }
}
