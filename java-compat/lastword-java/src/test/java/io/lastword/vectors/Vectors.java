package io.lastword.vectors;

import io.lastword.core.Json;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.TreeSet;
import java.util.stream.Stream;

/** The contract's vectors, as parsed JSON, and ways to read them. */
public final class Vectors {

  private Vectors() {}

  /** Every vector of a kind ({@code decode}, {@code client}, {@code retry}), by its id. */
  public static List<Map<String, Object>> of(String kind, int atLeast) {
    Path folder = Path.of(System.getProperty("lastword.contract"), "vectors", kind);
    List<Map<String, Object>> vectors = new ArrayList<>();
    try (Stream<Path> files = Files.list(folder)) {
      for (Path file : new TreeSet<>(files.toList())) {
        vectors.add(map(Json.parse(Files.readString(file, StandardCharsets.UTF_8))));
      }
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    } catch (Json.NotJsonException e) {
      throw new IllegalStateException(e);
    }
    if (vectors.size() < atLeast) { // no skip reads as green
      throw new IllegalStateException(
          folder + " has " + vectors.size() + " vectors, less than " + atLeast);
    }
    return vectors;
  }

  @SuppressWarnings("unchecked")
  public static Map<String, Object> map(Object value) {
    return (Map<String, Object>) value;
  }

  /** A member that is an object, empty if there is none. */
  public static Map<String, Object> map(Map<String, Object> outer, String name) {
    Object value = outer.get(name);
    return value == null ? Map.of() : map(value);
  }

  @SuppressWarnings("unchecked")
  public static List<Map<String, Object>> maps(Map<String, Object> outer, String name) {
    return (List<Map<String, Object>>) outer.getOrDefault(name, List.of());
  }

  @SuppressWarnings("unchecked")
  public static List<String> texts(Map<String, Object> outer, String name, List<String> otherwise) {
    return (List<String>) outer.getOrDefault(name, otherwise);
  }

  public static double number(Map<String, Object> outer, String name, double otherwise) {
    return outer.get(name) instanceof Number number ? number.doubleValue() : otherwise;
  }
}
