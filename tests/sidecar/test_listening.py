"""Where it says that it listens is an address that can be asked."""

from __future__ import annotations

import io

import pytest

from lastword_shim._listening import listen, say_ready


@pytest.mark.parametrize(("host", "shown"), [("", "0.0.0.0"), ("127.0.0.1", "127.0.0.1"), ("::1", "[::1]")])
def test_the_ready_line_has_a_host(host: str, shown: str) -> None:
    said = io.StringIO()
    with listen(host, 0) as listener:
        say_ready(host, listener, where=said)
        assert said.getvalue() == f"ready http://{shown}:{listener.getsockname()[1]}/v1\n"
