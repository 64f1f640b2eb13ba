/**
 * A client of OpenAI-compatible servers of which every call ends in a whole answer or in an error
 * that says what to do.
 */
module io.lastword {
  requires java.net.http;
  requires com.fasterxml.jackson.core;
  requires com.fasterxml.jackson.databind;
  requires static org.jspecify;

  exports io.lastword;
  exports io.lastword.errors;
  exports io.lastword.core to
      io.lastword.openai;
  exports io.lastword.transport to
      io.lastword.openai;
}
