"""URLs in messages."""

from __future__ import annotations

import pytest

from lastword._url import shown_url


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("http://h:8000/v1", "http://h:8000/v1"),
        ("h:8000", "h:8000"),
        ("http://user:s3cret@h/v1", "http://…@h/v1"),
        ("http://user:s3cret/x@h/v1", "http://…@h/v1"),
        ("http://user:s3cret#x@h/v1", "http://…@h/v1"),
        ("user:s3cret@h", "…@h"),
        ("http://h/v1?key=s3cret", "http://h/v1…"),
        ("http://h/v1#s3cret", "http://h/v1…"),
        ("http://h/v1?key=a\ns3cret", "http://h/v1…"),
    ],
)
def test_what_may_be_a_secret_is_left_out(url: str, shown: str) -> None:
    """User, password, query and fragment, in whatever form the URL is."""
    assert shown_url(url) == shown
