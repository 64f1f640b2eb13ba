"""A sidecar whose upstream leads back to it: told at once, and not with every descriptor that there is."""

from __future__ import annotations

import socket
import time

import pytest
from tests.conformance.command import lastword
from tests.ports import free_port
from tests.sidecar.process import asking, engine, sidecar
from tests.sidecar.wire import Call, plain, upstream
from tests.sidecar.wire import sidecar as sidecar_here

from lastword_shim.sidecar.address import Address
from lastword_shim.sidecar.fields import MOST_HOPS


@pytest.mark.anyio
@pytest.mark.parametrize("path", ["/v1/chat/completions", "/v1/files", "/metrics"])
async def test_a_request_that_comes_back_is_answered_at_once(path: str) -> None:
    port, began = free_port(), time.monotonic()
    async with sidecar_here(f"http://127.0.0.1:{port}", service={"port": port}) as server:
        answer = await server.ask({}, path=path, timeout=3)
        assert answer.status == 502
        assert b'"bad_gateway"' in answer.body
        assert len(server.uvicorn.server_state.connections) < 5
    assert time.monotonic() - began < 3


@pytest.mark.parametrize("host", ["127.0.0.1", "0.0.0.0", "localhost"])
def test_one_that_would_stand_in_front_of_itself_does_not_start(host: str) -> None:
    port = str(free_port())
    said = lastword("shim", "--upstream", f"http://{host}:{port}/v1", "--port", port)
    assert (said.status, said.out) == (2, "")
    assert f"--upstream http://{host}:{port} is where the sidecar itself listens" in said.err


@pytest.mark.parametrize(
    ("bound", "asked", "meets"),
    [
        ("127.0.0.1", "127.0.0.1", True),
        ("127.0.0.1", "127.0.0.2", False),
        ("127.0.0.2", "localhost", False),
        ("0.0.0.0", "127.0.0.2", True),
        ("0.0.0.0", "192.0.2.1", False),
        ("0.0.0.0", "no.such.invalid", False),
        ("::1", "::1", True),
        ("::", "::1", True),
        ("::1", "127.0.0.1", False),
    ],
)
def test_who_listens_at_an_address(bound: str, asked: str, meets: bool) -> None:
    family = socket.AF_INET6 if ":" in bound else socket.AF_INET
    with socket.create_server((bound, 0), family=family) as listener:
        port = listener.getsockname()[1]
        assert Address("http", asked, port).is_that_of(listener) is meets
        assert not Address("http", asked, port + 1).is_that_of(listener)


def test_sidecars_in_a_row_are_no_circle() -> None:
    with (
        engine() as behind,
        sidecar(behind.url) as second,
        sidecar(second.url) as first,
        asking(first.port, {}) as told,
    ):
        assert told.status == 200


@pytest.mark.anyio
@pytest.mark.parametrize(("hops", "status"), [(MOST_HOPS - 1, 200), (MOST_HOPS, 502)])
async def test_a_row_without_end_is_one(hops: int, status: int) -> None:
    async def handler(call: Call) -> None:
        await call.send(plain())

    via = ", ".join(f"1.1 lastword-{hop:08x}" for hop in range(hops))
    async with upstream(handler) as behind, sidecar_here(behind.url) as server:
        assert (await server.ask({}, path="/v1/files", headers={"via": via})).status == status
