package io.lastword.conformance;

import java.util.List;
import java.util.Map;

/** A client under test: makes one call, and reports what it tells its user. */
public interface Adapter {

  /** What the runner is told about it. */
  record About(String name, String version, List<String> capabilities, String note) {}

  About about();

  /**
   * Make one call.
   *
   * @param call {@code case} of contract/schemas/adapter.json
   * @return an outcome of contract/schemas/outcome.json
   * @throws Unable if the library has no way to make it
   */
  Map<String, Object> run(Case call) throws Exception;

  /** The library has no way to make this call. */
  final class Unable extends Exception {
    private static final long serialVersionUID = 1L;

    public Unable(String why) {
      super(why);
    }
  }
}
