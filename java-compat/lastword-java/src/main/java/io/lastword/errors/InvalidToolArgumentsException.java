package io.lastword.errors;

import io.lastword.Codes;
import io.lastword.Origin;
import io.lastword.OutcomeName;
import io.lastword.Partial;
import io.lastword.ToolCall;
import io.lastword.core.Classifier;
import java.util.List;
import org.jspecify.annotations.Nullable;

/**
 * The model wrote arguments that are no JSON object; the answer is complete, and its text is never
 * repaired (TOOL-1).
 */
public final class InvalidToolArgumentsException extends LastwordException {
  private static final long serialVersionUID = 1L;

  private final ToolCall toolCall;

  /** For the arguments of {@code toolCall}, which {@code reason} says what is wrong with. */
  public InvalidToolArgumentsException(
      ToolCall toolCall, String reason, @Nullable Throwable cause) {
    super(new Details(infoOf(toolCall, reason), Partial.NOTHING, List.of(), cause, null));
    this.toolCall = toolCall;
  }

  /** The call; {@link ToolCall#rawArguments} is all that the model wrote. */
  public ToolCall toolCall() {
    return toolCall;
  }

  /** Completed: the wire did its part, and the model did not. */
  @Override
  public OutcomeName outcome() {
    return OutcomeName.COMPLETED;
  }

  @Override
  public String action() {
    return "Show the model its text and the reason and ask it again, or refuse the call; nothing was cut on the way.";
  }

  private static ErrorInfo infoOf(ToolCall call, String reason) {
    String name = call.name().isEmpty() ? "without a name" : call.name();
    String message =
        "the arguments of the tool call " + name + " are not a JSON object (" + reason + ")";
    return Classifier.error(Codes.MALFORMED_RESPONSE, message, Origin.ENGINE)
        .retryable(false)
        .raw(Classifier.raw(call.rawArguments()))
        .build();
  }
}
