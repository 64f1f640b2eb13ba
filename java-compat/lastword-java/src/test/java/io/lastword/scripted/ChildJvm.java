package io.lastword.scripted;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.TimeUnit;

/** A process of its own, of the JDK and with the class path of the tests. */
public final class ChildJvm implements AutoCloseable {

  private final Path output = Files.createTempFile("child", ".txt");
  private final Process process;

  /** Run {@code main}. */
  public ChildJvm(Class<?> main, List<String> options, String... arguments) throws IOException {
    String java = Path.of(System.getProperty("java.home"), "bin", "java").toString();
    List<String> command = new ArrayList<>(List.of(java));
    command.addAll(options);
    command.addAll(List.of("-cp", System.getProperty("java.class.path"), main.getName()));
    command.addAll(List.of(arguments));
    process =
        new ProcessBuilder(command)
            .redirectErrorStream(true)
            .redirectOutput(output.toFile())
            .start();
  }

  /** Let it read the end of its input. */
  public void endInput() throws IOException {
    process.getOutputStream().close();
  }

  /**
   * Its exit status, and what it printed.
   *
   * @throws AssertionError if it is still there after so long
   */
  public String exit(int seconds) throws Exception {
    boolean exited = process.waitFor(seconds, TimeUnit.SECONDS);
    String printed = Files.readString(output);
    if (!exited) {
      throw new AssertionError("still there after " + seconds + " s; it printed: " + printed);
    }
    return (process.exitValue() + " " + printed).strip();
  }

  @Override
  public void close() throws IOException {
    process.destroyForcibly();
    Files.delete(output);
  }
}
