package io.lastword;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertSame;
import static org.junit.jupiter.api.Assertions.assertThrows;

import io.lastword.core.Classifier;
import io.lastword.core.Registry;
import io.lastword.errors.LastwordException;
import java.util.List;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/** Every code of the contract, as an exception and as an outcome. */
@Timeout(30)
class OutcomeTest {

  @Test
  void everyCodeHasItsExceptionAndOutcome() {
    for (String code : Registry.CODES.keySet()) {
      LastwordException error =
          LastwordException.of(
              Classifier.error(code, "m").build(), Partial.NOTHING, List.of(), null);
      assertEquals(code, error.code());
      Outcome outcome = Outcome.of(error);
      assertEquals(error.outcome(), outcome.name());
      assertSame(error, assertThrows(LastwordException.class, outcome::orThrow));
    }
  }
}
