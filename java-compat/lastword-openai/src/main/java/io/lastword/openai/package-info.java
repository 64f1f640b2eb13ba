/**
 * The contract's errors for those who keep the official openai-java: one decorator of its HTTP
 * client.
 */
@NullMarked
package io.lastword.openai;

import org.jspecify.annotations.NullMarked;
