package io.lastword.core;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertSame;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.math.BigDecimal;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/** JSON as plain values that nobody can change. */
@Timeout(30)
class JsonTest {

  @Test
  void aFrozenCopyIsTheSameJson() throws Exception {
    String text = "{\"z\":null,\"a\":[1,2.50,null,{\"b\":true}],\"m\":{}}";
    Object value = Json.parse(text);
    assertEquals(value, Json.frozen(value));
    assertEquals(Json.write(value), Json.write(Json.frozen(value)));
    BigDecimal number = new BigDecimal("1.10");
    assertSame(number, Json.frozen(number));
    assertNull(Json.frozen((Object) null));
  }

  @Test
  void nobodyCanChangeItAtAnyDepth() {
    List<Object> list = new ArrayList<>(Arrays.asList(1, null));
    Map<String, Object> inner = new LinkedHashMap<>(Map.of("list", list));
    Map<String, Object> outer = new LinkedHashMap<>(Map.of("inner", inner));
    Map<String, Object> copy = Json.frozen(outer);
    list.add(2);
    inner.put("more", 3);
    outer.clear();
    assertEquals(Map.of("inner", Map.of("list", Arrays.asList(1, null))), copy);
    Map<String, Object> kept = Json.object(copy.get("inner"));
    assertThrows(UnsupportedOperationException.class, () -> copy.put("x", 1));
    assertThrows(UnsupportedOperationException.class, () -> kept.put("x", 1));
    assertThrows(UnsupportedOperationException.class, () -> ((List<?>) kept.get("list")).remove(0));
  }

  @Test
  void whatIsNoJsonStaysAndIsRefused() {
    Object strange = new Object();
    assertSame(strange, Json.frozen(strange));
    assertRefused(Map.of("a", List.of(strange)), "a java.lang.Object");
    assertRefused(Map.of(1, 2), "a key that is no string: 1");
    Map<String, Object> itself = new LinkedHashMap<>();
    itself.put("one", itself);
    itself.put("two", List.of(itself));
    assertRefused(itself, "nested deeper than 1000 levels");
    Object deep = 1;
    for (int i = 0; i < 3000; i++) {
      deep = List.of(deep);
    }
    assertRefused(deep, "nested deeper than 1000 levels");
  }

  @Test
  void nothingMayFollowTheValue() {
    assertThrows(Json.NotJsonException.class, () -> Json.parse("{} {}"));
  }

  private static void assertRefused(Object value, String why) {
    String said =
        assertThrows(Json.NotJsonException.class, () -> Json.write(Json.frozen(value)))
            .getMessage();
    assertTrue(said.startsWith(why), said);
  }
}
