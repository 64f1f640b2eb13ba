package io.lastword.transport;

import io.lastword.Codes;
import io.lastword.core.Classifier;
import io.lastword.core.StreamTracker.WireEnd;
import io.lastword.errors.ErrorInfo;
import java.io.IOException;
import java.net.ConnectException;
import java.net.SocketException;
import java.nio.channels.UnresolvedAddressException;
import java.security.cert.CertificateException;
import javax.net.ssl.SSLException;
import javax.net.ssl.SSLPeerUnverifiedException;
import org.jspecify.annotations.Nullable;

/** What the JDK's HTTP client throws, in the contract's words. */
public final class JdkErrors {

  private JdkErrors() {}

  /** How a body ended that {@code error} broke off. */
  public static WireEnd wireEnd(@Nullable Throwable error) {
    for (Throwable each = error; each != null; each = each.getCause()) {
      if (each instanceof SocketException && String.valueOf(each.getMessage()).contains("reset")) {
        return WireEnd.RESET;
      }
    }
    return WireEnd.TRUNCATED;
  }

  /** Why no answer came from {@code server}, which is a host and a port. */
  static ErrorInfo unanswered(IOException error, String server) {
    String text = text(error);
    if (error instanceof ConnectException) { // of which the JDK says nothing more
      boolean unknown = error.getCause() instanceof UnresolvedAddressException;
      return failed(
          "the server was not reached: "
              + server
              + (unknown
                  ? " is a name that nobody knows"
                  : " does not take the connection; does it run, and is this its port?"));
    }
    if (error.getCause() instanceof IllegalArgumentException) {
      return unsendable(text);
    }
    ErrorInfo untrusted = untrusted(error, server);
    if (untrusted != null) {
      return untrusted;
    }
    return failed(
        error instanceof SSLException
            ? "no secure connection to " + server + " (" + text + ")"
            : "the connection to " + server + " broke before an answer came (" + text + ")");
  }

  /** A request that cannot be sent, and why. */
  static ErrorInfo unsendable(String why) {
    return Classifier.error(Codes.INVALID_REQUEST_ERROR, "the request cannot be sent (" + why + ")")
        .build();
  }

  /**
   * A certificate of {@code server} that was refused, which the next attempt would meet as well;
   * null if none was.
   */
  public static @Nullable ErrorInfo untrusted(@Nullable Throwable error, String server) {
    for (Throwable each = error; each != null; each = each.getCause()) {
      if (each instanceof CertificateException || each instanceof SSLPeerUnverifiedException) {
        String message =
            "the certificate of " + server + " is not trusted (" + each.getMessage() + ")";
        return failed(message).toBuilder().retryable(false).build();
      }
    }
    return null;
  }

  /** What is wrong with a body that does not unpack. */
  static String undecoded(IOException error) {
    return "the answer cannot be decoded (" + text(error) + ")";
  }

  private static String text(IOException error) {
    return error.getMessage() == null ? error.getClass().getSimpleName() : error.getMessage();
  }

  private static ErrorInfo failed(String message) {
    return Classifier.error(Codes.CONNECTION_FAILED, message).build();
  }
}
