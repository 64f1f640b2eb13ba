/** The exceptions, named for what the caller can do. */
@NullMarked
package io.lastword.errors;

import org.jspecify.annotations.NullMarked;
