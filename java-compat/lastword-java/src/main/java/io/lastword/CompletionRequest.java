package io.lastword;

import java.util.List;
import java.util.Objects;

/** A request to {@code /completions}. */
public final class CompletionRequest extends Request {

  private CompletionRequest(Builder builder) {
    super(builder);
  }

  /** An empty one; it needs a model and a prompt. */
  public static Builder builder() {
    return new Builder();
  }

  /** Collects what to send. */
  public static final class Builder extends Request.Builder<Builder> {

    private Builder() {}

    @Override
    Builder self() {
      return this;
    }

    /** The text to go on from. */
    public Builder prompt(String prompt) {
      return set("prompt", Objects.requireNonNull(prompt, "prompt"));
    }

    /** Several texts, each of which gets choices of its own. */
    public Builder prompts(List<String> prompts) {
      for (String each : Objects.requireNonNull(prompts, "prompts")) {
        Objects.requireNonNull(each, "a text of prompts");
      }
      return set("prompt", prompts);
    }

    /** The request. */
    public CompletionRequest build() {
      return new CompletionRequest(this);
    }
  }
}
