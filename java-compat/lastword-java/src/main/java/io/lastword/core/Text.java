package io.lastword.core;

/** Cutting text without leaving half a character, and stripping all that looks like nothing. */
final class Text {

  private Text() {}

  /**
   * The first {@code length} UTF-16 units of {@code text}, one less where that would cut a
   * character in two.
   */
  static String cut(String text, int length) {
    if (text.length() <= length) {
      return text;
    }
    return text.substring(
        0, Character.isHighSurrogate(text.charAt(length - 1)) ? length - 1 : length);
  }

  /** {@code text} without white space at its ends, no-break spaces and U+0085 included. */
  static String strip(String text) {
    int from = 0;
    int to = text.length();
    while (from < to && isSpace(text.charAt(from))) {
      from++;
    }
    while (to > from && isSpace(text.charAt(to - 1))) {
      to--;
    }
    return text.substring(from, to);
  }

  private static boolean isSpace(char each) {
    return Character.isWhitespace(each) || Character.isSpaceChar(each) || each == '\u0085';
  }
}
