package io.lastword;

import java.io.Serializable;
import java.time.Duration;
import java.time.Instant;
import org.jspecify.annotations.Nullable;

/**
 * What one try of a request met.
 *
 * @param number 1, 2, …
 * @param code null where it succeeded
 * @param status the HTTP status that came, if one did
 * @param message what went wrong, {@code ""} where nothing did
 * @param startedAt when it began
 * @param duration how long it took
 * @param delay the wait before it
 * @param timer the client's own timer that ended it
 */
public record Attempt(
    int number,
    @Nullable String code,
    @Nullable Integer status,
    String message,
    Instant startedAt,
    Duration duration,
    Duration delay,
    @Nullable Timer timer)
    implements Serializable {}
