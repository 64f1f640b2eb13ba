package io.lastword.core;

import java.net.URI;
import java.net.URISyntaxException;
import org.jspecify.annotations.Nullable;

/** Checks a base URL. Messages leave out user, query and fragment, which may be secrets. */
public final class BaseUrl {

  private BaseUrl() {}

  /**
   * The URL, without slashes at its end.
   *
   * @throws IllegalArgumentException if it is not one; the message says what to give instead
   */
  public static String checked(String given) {
    String url = given;
    while (url.endsWith("/")) {
      url = url.substring(0, url.length() - 1);
    }
    String wrong = wrong(url);
    if (wrong != null) {
      throw new IllegalArgumentException("baseUrl '" + shown(url) + "': " + wrong);
    }
    return url;
  }

  private static @Nullable String wrong(String url) {
    String example = "give a URL such as http://127.0.0.1:8000/v1";
    URI parsed;
    try {
      parsed = new URI(url);
    } catch (URISyntaxException e) {
      return example;
    }
    String authority = parsed.getRawAuthority();
    if (!String.valueOf(parsed.getScheme()).matches("(?i)https?") || authority == null) {
      return example;
    }
    if (authority.contains("@")) {
      return "there is a user in it; give header(\"authorization\", …) instead";
    }
    if (parsed.getRawQuery() != null || parsed.getRawFragment() != null) {
      return "there is a ? or a # in it; give it without, up to /v1, and keys as headers";
    }
    if (parsed.getHost() == null && authority.contains("_")) {
      return "the JDK takes no name with an underscore for a host; use another name or the address";
    }
    boolean portFits = parsed.getPort() != 0 && parsed.getPort() < 65536;
    return parsed.getHost() != null && portFits ? null : example;
  }

  /** A URL without what may be a secret. */
  public static String shown(String url) {
    return url.replaceFirst("(?s)^(\\w+://)?.*@", "$1…@").replaceAll("(?s)[?#].*", "…");
  }
}
