/**
 * The pure core: bytes to events, events to a verdict, errors to codes, failures to decisions. No
 * I/O, no clock.
 */
@NullMarked
package io.lastword.core;

import org.jspecify.annotations.NullMarked;
