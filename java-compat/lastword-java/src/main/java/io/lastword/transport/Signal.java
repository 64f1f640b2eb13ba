package io.lastword.transport;

import java.net.http.HttpResponse;
import java.nio.ByteBuffer;
import java.util.List;
import org.jspecify.annotations.Nullable;

/** What another thread tells the thread that waits for a call. */
sealed interface Signal {

  /** Whose it is; null for that of a cancellation, which is the call's. */
  @Nullable Exchange exchange();

  /** The head of the answer is there. */
  record Head(Exchange exchange, HttpResponse.ResponseInfo info) implements Signal {}

  /** No answer will come. */
  record NoAnswer(Exchange exchange, Throwable cause) implements Signal {}

  /** A piece of the body. */
  record Data(Exchange exchange, List<ByteBuffer> buffers) implements Signal {}

  /** The body has ended as its framing says. */
  record End(Exchange exchange) implements Signal {}

  /** The body broke off. */
  record Broken(Exchange exchange, Throwable cause) implements Signal {}

  /** Somebody cancelled the call. */
  record Woken() implements Signal {
    @Override
    public @Nullable Exchange exchange() {
      return null;
    }
  }
}
