package io.lastword.openai;

import com.openai.core.http.HttpResponse;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;

/** The bodies that are being read, so that all can be ended. For several threads. */
final class Pumps {

  private final Set<Pump> open = ConcurrentHashMap.newKeySet();
  private volatile boolean closed;

  /** A pump that reads this body. */
  Pump of(HttpResponse response) {
    Pump pump = new Pump(response, open::remove);
    open.add(pump);
    pump.start();
    if (closed) { // meanwhile
      pump.close();
    }
    return pump;
  }

  /** End all, and whatever begins later. */
  void close() {
    closed = true;
    open.forEach(Pump::close);
  }
}
