"""What a client is set up with, from arguments and environment."""

from __future__ import annotations

import os
import ssl
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final
from urllib.parse import urlsplit

from lastword._codes import PROFILES, Profile
from lastword._deadline import Timeouts
from lastword._retry import RetryBudget, RetryPolicy
from lastword._url import shown_url

__version__: Final = "0.1.0"


@dataclass(frozen=True, slots=True, kw_only=True)
class Config:
    """A client's settings, checked."""

    base_url: str
    headers: dict[str, str]
    timeouts: Timeouts
    retry: RetryPolicy
    budget: RetryBudget
    profile: Profile | None
    ssl_context: ssl.SSLContext | None


def configure(
    *,
    base_url: str | None,
    api_key: str | None,
    timeouts: Timeouts | None,
    retry: RetryPolicy | None,
    profile: str | None,
    default_headers: Mapping[str, str] | None,
    ssl_context: ssl.SSLContext | None,
) -> Config:
    """Check the arguments and fill in the environment's; raises ``ValueError`` that says what to give instead."""
    url = (base_url or _environment("BASE_URL") or "https://api.openai.com/v1").rstrip("/")
    if not _is_usable(url):
        raise ValueError(f"base_url={shown_url(url)!r}: give a URL such as http://127.0.0.1:8000/v1")
    if profile is not None and profile not in PROFILES:
        raise ValueError(f"profile={profile!r}: this version knows {', '.join(PROFILES) or 'none'}")
    wrong = [(name, value) for name, value in (default_headers or {}).items() if not _are_texts(name, value)]
    if wrong:
        kinds = " and ".join(type(each).__name__ for each in wrong[0])
        raise ValueError(f"default_headers: give names and values as str, not {kinds}")
    key = api_key or _environment("API_KEY")
    headers = {"user-agent": f"lastword-python/{__version__}", **(default_headers or {})}
    if key:
        if not _are_texts(key) or not key.isascii() or not key.isprintable():
            raise ValueError("api_key: it has characters that no HTTP header can carry (a line break, perhaps)")
        headers.setdefault("authorization", f"Bearer {key}")
    policy = retry or RetryPolicy()
    return Config(
        base_url=url,
        headers=headers,
        timeouts=timeouts or Timeouts(),
        retry=policy,
        budget=RetryBudget(policy.budget),
        profile=PROFILES[profile] if profile else None,
        ssl_context=ssl_context,
    )


def _environment(name: str) -> str | None:
    return os.environ.get(f"LASTWORD_{name}") or os.environ.get(f"OPENAI_{name}")


def _are_texts(*values: object) -> bool:
    return all(isinstance(value, str) for value in values)


def _is_usable(url: str) -> bool:
    """Whether it has a scheme, a host and, if any, a port that is one: the system would take another for 99999."""
    try:
        parts = urlsplit(url)
        return parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:
        return False
