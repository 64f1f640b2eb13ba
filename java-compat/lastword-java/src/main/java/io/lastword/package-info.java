/**
 * The client: what to call, what comes back.
 *
 * <p>Names such as STR-9 are rules of the contract; {@code contract/SPEC.md} of the repository has
 * their words.
 */
@NullMarked
package io.lastword;

import org.jspecify.annotations.NullMarked;
