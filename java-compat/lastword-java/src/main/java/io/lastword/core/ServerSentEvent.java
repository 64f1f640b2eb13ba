package io.lastword.core;

/**
 * One dispatched event of a {@code text/event-stream}.
 *
 * @param data its {@code data} lines joined with LF
 * @param name what its {@code event} line said, {@code ""} where it had none
 */
public record ServerSentEvent(String data, String name) {}
