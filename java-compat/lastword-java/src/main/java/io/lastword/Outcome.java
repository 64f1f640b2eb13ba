package io.lastword;

import io.lastword.errors.LastwordException;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.function.Function;
import org.jspecify.annotations.Nullable;

/**
 * A request's last word: exactly one of four (the OUT rules).
 *
 * <pre>{@code
 * String shown = outcome.fold(
 *     completed  -> completed.text(),
 *     incomplete -> incomplete.error().partial().text() + " […]",
 *     failed     -> failed.error().getMessage(), // by a timer, say; partial() has what had come
 *     cancelled  -> "stopped");
 * }</pre>
 */
public sealed interface Outcome permits Completed, Incomplete, Failed, Cancelled {

  /** Which of the four. */
  OutcomeName name();

  /** What {@code create} would have thrown; null if it completed. */
  @Nullable LastwordException error();

  /** The request's id: the server's word on it, else the one that was sent. */
  default @Nullable String requestId() {
    return thrown().requestId();
  }

  /** What each try met, in order. */
  default List<Attempt> attempts() {
    return thrown().attempts();
  }

  /** Each choice's finish_reason as the server wrote it, null where it has none. */
  default Map<Integer, @Nullable String> finishReasons() {
    return thrown().partial().finishReasons();
  }

  /**
   * The last token counts that the server sent, keys as in OpenAI's {@code usage}; null if it sent
   * none.
   */
  default @Nullable Map<String, @Nullable Object> usage() {
    return thrown().partial().usage();
  }

  /**
   * The answer.
   *
   * @throws LastwordException if the request did not complete
   */
  default Completed orThrow() {
    throw thrown();
  }

  private LastwordException thrown() {
    return Objects.requireNonNull(error(), "a completed answer says all of this itself");
  }

  /** The value of the one function that fits. */
  default <T extends @Nullable Object> T fold(
      Function<? super Completed, ? extends T> completed,
      Function<? super Incomplete, ? extends T> incomplete,
      Function<? super Failed, ? extends T> failed,
      Function<? super Cancelled, ? extends T> cancelled) {
    if (this instanceof Completed it) {
      return completed.apply(it);
    }
    if (this instanceof Incomplete it) {
      return incomplete.apply(it);
    }
    return this instanceof Failed it ? failed.apply(it) : cancelled.apply((Cancelled) this);
  }

  /** The outcome of a call that ended in {@code error}. */
  static Outcome of(LastwordException error) {
    return switch (error.outcome()) {
      case INCOMPLETE -> new Incomplete(error);
      case CANCELLED -> new Cancelled(error);
      default -> new Failed(error);
    };
  }
}
