package io.lastword.core;

import io.lastword.vectors.Vectors;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.Random;
import java.util.stream.Stream;
import org.junit.jupiter.api.DynamicTest;
import org.junit.jupiter.api.TestFactory;

/**
 * The decode vectors again, their bytes cut at random places; the name of a test that fails has the
 * seed.
 */
class ChunkingTest {

  private static final int SEEDS = 20;

  @TestFactory
  Stream<DynamicTest> vectors() {
    return Vectors.of("decode", 150).stream()
        // those that name their cuts mean them
        .filter(vector -> !vector.containsKey("segmentations"))
        .flatMap(
            vector ->
                Stream.iterate(1, seed -> seed + 1)
                    .limit(SEEDS)
                    .map(
                        seed ->
                            DynamicTest.dynamicTest(
                                vector.get("id") + ", seed " + seed, () -> play(vector, seed))));
  }

  private static void play(Map<String, Object> vector, long seed) {
    Random random = new Random(seed);
    int longest = 1 + random.nextInt(64);
    List<byte[]> pieces = new ArrayList<>();
    for (byte[] whole : DecodeVectorsTest.pieces(vector, "whole")) {
      int at = 0;
      while (at < whole.length) {
        // now and then an empty one too
        int length = random.nextInt(longest) + (random.nextInt(8) == 0 ? 0 : 1);
        int end = Math.min(whole.length, at + length);
        pieces.add(Arrays.copyOfRange(whole, at, end));
        at = end;
      }
    }
    DecodeVectorsTest.play(vector, pieces);
  }
}
