/** The client: what to call, what comes back. */
@NullMarked
package io.lastword;

import org.jspecify.annotations.NullMarked;
