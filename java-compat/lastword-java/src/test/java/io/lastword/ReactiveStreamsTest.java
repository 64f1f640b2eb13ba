package io.lastword;

import static io.lastword.Answers.HI;
import static io.lastword.Answers.client;
import static io.lastword.Answers.server;
import static io.lastword.Answers.silence;
import static io.lastword.Answers.stream;

import io.lastword.scripted.ScriptedServer;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.lang.reflect.Method;
import java.util.Collections;
import java.util.Map;
import java.util.concurrent.Flow;
import java.util.regex.Pattern;
import java.util.stream.LongStream;
import java.util.stream.Stream;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.MethodSource;
import org.junit.platform.commons.support.AnnotationSupport;
import org.junit.platform.commons.support.HierarchyTraversalMode;
import org.junit.platform.commons.support.ReflectionSupport;
import org.reactivestreams.tck.TestEnvironment;
import org.reactivestreams.tck.flow.FlowPublisherVerification;

/**
 * The publisher of chunks, on real sockets, held against Reactive Streams' own tests. A rule that
 * they would skip fails here.
 */
@Timeout(60)
class ReactiveStreamsTest extends FlowPublisherVerification<Chunk> {

  /**
   * Those that only name a rule and always skip; and the stream of nothing that completes: an
   * answer without a chunk has no finish_reason and is not whole, so it is an error by the
   * contract.
   */
  private static final Pattern LEFT_OUT =
      Pattern.compile(
          "untested_.*|optional_spec105_emptyStreamMustTerminateBySignallingOnComplete");

  private static final int SIGNAL_MILLIS = 10_000; // waited for until it comes
  private static final int SILENCE_MILLIS = 100; // this and what follows: waited for in full
  private static final int ERROR_MILLIS = 1_000; // when an error is looked for, once
  private static final int COLLECTED_MILLIS = 1_000;
  private static final int SUBSCRIPTIONS = 100; // the most that one test makes
  private static final int ENDLESS = 32; // chunks: more than are read of a stream of 2^31

  private ScriptedServer server;
  private LastwordClient client;

  ReactiveStreamsTest() {
    super(new TestEnvironment(SIGNAL_MILLIS, SILENCE_MILLIS, ERROR_MILLIS), COLLECTED_MILLIS);
  }

  static Stream<Method> rules() {
    return AnnotationSupport.findAnnotatedMethods(
            FlowPublisherVerification.class,
            org.testng.annotations.Test.class,
            HierarchyTraversalMode.TOP_DOWN)
        .stream()
        .filter(each -> !LEFT_OUT.matcher(each.getName()).matches());
  }

  @ParameterizedTest
  @MethodSource("rules")
  void keeps(Method rule) {
    ReflectionSupport.invokeMethod(rule, this);
  }

  @Override
  public Flow.Publisher<Chunk> createFlowPublisher(long elements) {
    String[] texts =
        LongStream.range(1, Math.min(elements, ENDLESS))
            .mapToObj(Long::toString)
            .toArray(String[]::new);
    // The last chunk of a whole answer has the finish_reason and no text.
    return publisher(stream(elements < ENDLESS ? "[DONE]" : silence(), texts), HI);
  }

  @Override
  public Flow.Publisher<Chunk> createFailedFlowPublisher() {
    return publisher(Map.of(), ChatRequest.builder().user("hi").set("x", new Object()).build());
  }

  /** A test that asks for several publishers asks for the same one each time. */
  private Flow.Publisher<Chunk> publisher(Map<String, Object> answer, ChatRequest request) {
    if (server == null) {
      try {
        server = server(Collections.nCopies(SUBSCRIPTIONS, answer));
      } catch (IOException e) {
        throw new UncheckedIOException(e);
      }
      client = client(server);
    }
    return client.chat().completions().publish(request);
  }

  @AfterEach
  void close() throws IOException {
    if (server != null) {
      client.close();
      server.close();
    }
  }
}
