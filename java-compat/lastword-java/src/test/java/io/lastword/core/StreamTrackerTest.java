package io.lastword.core;

import static org.junit.jupiter.api.Assertions.assertEquals;

import java.util.List;
import java.util.Map;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/** What a tracker keeps of the chunks that it hands over. */
@Timeout(30)
class StreamTrackerTest {

  @Test
  void whoeverChangesAChunkChangesNoOutcome() {
    StreamTracker tracker = new StreamTracker(1, null);
    Map<String, Object> chunk =
        tracker.accept(
            new ServerSentEvent(
                "{\"choices\": [{\"index\": 0, \"delta\": {\"content\": \"a\"}}], \"usage\": {\"total_tokens\": 1}}",
                ""));
    ((Map<?, ?>) chunk.get("usage")).clear();
    ((List<?>) chunk.get("choices")).clear();
    assertEquals(Map.of("total_tokens", 1), tracker.partial().usage());
    assertEquals(Map.of(0, "a"), tracker.texts());
  }
}
