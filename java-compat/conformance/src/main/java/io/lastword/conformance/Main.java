package io.lastword.conformance;

import io.lastword.core.Json;
import java.io.BufferedReader;
import java.io.FileDescriptor;
import java.io.FileInputStream;
import java.io.FileOutputStream;
import java.io.IOException;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.util.LinkedHashMap;
import java.util.Map;
import java.util.TreeMap;
import java.util.function.Supplier;

/**
 * The adapter protocol of the conformance suite, version 1: one JSON object a line on stdin and
 * stdout.
 *
 * <pre>lastword conformance client -- java -jar lastword-conformance.jar lastword</pre>
 */
public final class Main {

  private static final Map<String, Supplier<Adapter>> ADAPTERS =
      new TreeMap<>(
          Map.of(
              "lastword", LastwordAdapter::new,
              "openai", () -> new OpenAiAdapter(false),
              "openai-lastword", () -> new OpenAiAdapter(true)));

  private Main() {}

  public static void main(String[] arguments) throws IOException {
    Supplier<Adapter> chosen = arguments.length == 1 ? ADAPTERS.get(arguments[0]) : null;
    if (chosen == null) {
      System.err.println(
          "usage: java -jar lastword-conformance.jar " + String.join("|", ADAPTERS.keySet()));
      System.exit(2);
    }
    run(chosen.get());
  }

  /**
   * Speak the protocol for an adapter until the runner stops, or closes stdin; then the process
   * ends.
   */
  public static void run(Adapter adapter) throws IOException {
    PrintStream answers =
        new PrintStream(new FileOutputStream(FileDescriptor.out), false, StandardCharsets.UTF_8);
    // stdout is the protocol's: what a library prints goes to stderr
    System.setOut(System.err);
    serve(adapter, answers);
    System.err.flush();
    // whatever threads the library keeps
    Runtime.getRuntime().halt(0);
  }

  private static void serve(Adapter adapter, PrintStream answers) throws IOException {
    InputStreamReader bytes =
        new InputStreamReader(new FileInputStream(FileDescriptor.in), StandardCharsets.UTF_8);
    BufferedReader lines = new BufferedReader(bytes);
    for (String line = lines.readLine(); line != null; line = lines.readLine()) {
      Map<String, Object> message;
      try {
        message = Case.map(Json.parse(line));
      } catch (Json.NotJsonException | IllegalArgumentException e) {
        System.err.println(
            "the runner sent " + line + ", which is no line of the adapter protocol");
        Runtime.getRuntime().halt(1);
        return;
      }
      String command = String.valueOf(message.get("cmd"));
      if (command.equals("stop")) {
        return;
      }
      answers.println(
          json(command.equals("start") ? hello(adapter.about()) : answer(adapter, message)));
      answers.flush();
    }
  }

  private static Map<String, Object> hello(Adapter.About about) {
    Map<String, Object> hello = new LinkedHashMap<>();
    hello.put("protocol", 1);
    hello.put("name", about.name());
    hello.put("version", about.version());
    hello.put("language", "java");
    hello.put("capabilities", about.capabilities().stream().sorted().toList());
    hello.put("note", about.note());
    return hello;
  }

  private static Map<String, Object> answer(Adapter adapter, Map<String, Object> message) {
    Map<String, Object> answer = new LinkedHashMap<>();
    answer.put("seq", message.get("seq"));
    try {
      answer.put("result", adapter.run(new Case(Case.map(message.get("case")))));
    } catch (Adapter.Unable e) {
      answer.put("unable", String.valueOf(e.getMessage()));
    } catch (Exception e) {
      // the adapter's own fault: the runner is told, stderr has the place
      e.printStackTrace();
      answer.put("unable", "the adapter failed: " + e);
    } catch (Error e) {
      // a missing class, say: a library's threads would keep the process, and the runner would wait
      e.printStackTrace();
      Runtime.getRuntime().halt(1);
    }
    return answer;
  }

  private static String json(Map<String, Object> value) {
    try {
      return Json.write(value);
    } catch (Json.NotJsonException e) {
      throw new IllegalStateException(e);
    }
  }
}
