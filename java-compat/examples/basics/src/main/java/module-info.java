/** An application that takes lastword as the module that it is. */
module io.lastword.examples {
  requires io.lastword;
  requires com.fasterxml.jackson.databind;
  requires java.net.http;
  requires jdk.httpserver;

  opens io.lastword.examples to
      com.fasterxml.jackson.databind;
}
