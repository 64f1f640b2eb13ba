package io.lastword.openai;

import com.openai.errors.OpenAIException;
import io.lastword.errors.LastwordException;

/**
 * What openai-java has no exception for, or would try again for nothing: a stream that broke after
 * its first chunk, a call that this side ended, by stopping it or by a timer other than {@code
 * connect}, and a certificate that is not trusted. The contract's is {@link #error}.
 */
public final class LastwordOpenAIException extends OpenAIException {
  private static final long serialVersionUID = 1L;

  private final LastwordException error;

  LastwordOpenAIException(LastwordException error) {
    super(error.getMessage(), error);
    this.error = error;
  }

  /** The contract's: its code, whether to retry, and what had been received. */
  public LastwordException error() {
    return error;
  }
}
