package io.lastword;

import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;

/** A process of its own, of the JDK and with the class path of the tests. */
final class ChildJvm {

  private ChildJvm() {}

  /** Run {@code main}, with what it prints among the tests' own output. */
  static Process start(Class<?> main, List<String> options, String... arguments) throws Exception {
    List<String> command =
        new ArrayList<>(
            List.of(Path.of(System.getProperty("java.home"), "bin", "java").toString()));
    command.addAll(options);
    command.addAll(List.of("-cp", System.getProperty("java.class.path"), main.getName()));
    command.addAll(List.of(arguments));
    return new ProcessBuilder(command)
        .redirectOutput(ProcessBuilder.Redirect.INHERIT)
        .redirectErrorStream(true)
        .start();
  }
}
