"""Servers that are launched before the tests that will use them: a start takes half a minute, nearly all on one core."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, Literal

import pytest
from tests.live.vllm_server import VllmServer

Say = Callable[[str], None]
Options = dict[str, Any]
COUNT = int(os.environ.get("LIVE_AHEAD", "2"))
NICE = 15  # while nobody waits for it, a start takes what the test beside it leaves
OWN = ("fresh_vllm", "launched_vllm")
_shared: dict[str, Options] = {}


def shared_server(
    name: str, *, scope: Literal["module", "session"] = "module", gently: bool = True, **options: Any
) -> Any:
    """A fixture called `name`: one server for all tests of the scope, with the options of `VllmServer`."""
    _shared[name] = options

    @pytest.fixture(scope=scope, name=name)
    def lend(ahead: Ahead, say: Say) -> Iterator[VllmServer]:
        yield from serve(ahead.take(name), say, gently=gently)

    return lend


def serve(server: VllmServer, say: Say, *, gently: bool) -> Iterator[VllmServer]:
    """Wait for a launched server, lend it, end it, and fail if it left anything behind."""
    try:
        server.wait_ready(say)
        yield server
    finally:
        left = server.stop(gently=gently)
    if left:
        pytest.fail(left, pytrace=False)


def needs(item: pytest.Item) -> Iterator[tuple[str, Options]]:
    """The servers that a test will take: their names, its own by its id, and how they are started."""
    names = getattr(item, "fixturenames", ())
    yield from ((name, _shared[name]) for name in names if name in _shared)
    if not set(OWN).isdisjoint(names):
        marker = item.get_closest_marker("fresh")
        yield item.nodeid, dict(marker.kwargs) if marker else {}


class Ahead:
    """All servers that the tests will take, in their order; the next few are launched already."""

    def __init__(self, launch: Callable[..., VllmServer], items: Sequence[pytest.Item]) -> None:
        self.launch = launch
        self.waiting: dict[str, VllmServer] = {}
        self._to_come: dict[str, Options] = {}
        for item in items:
            for name, options in needs(item):
                self._to_come.setdefault(name, options)

    def take(self, name: str) -> VllmServer:
        options = self._to_come.pop(name)
        server = self.waiting.pop(name, None) or self.launch(**options)
        server.step_back(0)
        self.prepare()
        return server

    def prepare(self) -> None:
        """Launch the next ones, as many as may wait at once."""
        for name in self._next():
            if name not in self.waiting:
                self.waiting[name] = self.launch(**self._to_come[name])
                self.waiting[name].step_back(NICE)

    def _next(self) -> Iterable[str]:
        return list(self._to_come)[:COUNT]
