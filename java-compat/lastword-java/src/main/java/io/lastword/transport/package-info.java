/**
 * The thin shell round the JDK's HTTP client: one call over its attempts, and the one place where
 * it waits.
 */
@NullMarked
package io.lastword.transport;

import org.jspecify.annotations.NullMarked;
