"""Real vLLM for tests: how to get a server.

Every server is an unmodified ``vllm serve`` of the tiny model (called ``m``; random weights; one token a byte; 8192
tokens of context; eight sequences at once) from the environment that `scripts/environment/engine_env.py` caches. A start
takes about 26 s, so choose:

* ``vllm``        session-wide, shim mounted. For tests that leave the server as they found it; call
  ``vllm.wait_idle()`` before counting.
* `shared_server` makes a module's own, for what several tests of it want switched on.
* ``fresh_vllm``  this test's own, to be killed, stopped or filled. The marker configures it, each argument optional::

      @pytest.mark.fresh(shim=True, args=("--shutdown-timeout", "10"), env={"LASTWORD_IDLE_TIMEOUT": "2"})
      def test_x(fresh_vllm: VllmServer) -> None: ...

  Still: cause one fault and look at it from several sides in one test (a stream, a non-stream, a queued request, the
  records, the log). The marker works in ``pytest.param(…, marks=…)``.
* ``launched_vllm``  the same, but nobody waits until it is ready: for a server that must not start.
* ``start_vllm``  the factory: ``start_vllm(shim=…, args=…, env=…)`` starts one more for this test and waits for it.

All but the last are known before the tests run. While a test runs, the next two are starting already, with what it
leaves of the cores (``LIVE_AHEAD``: how many, 0 turns it off; about 2 GB each).

The object is `tests.live.vllm_server.VllmServer` (``from tests.live.vllm_server import VllmServer``):
``base_url``, ``root_url``, ``port``, ``process`` (Popen: ``.send_signal``, ``.wait``), ``get(path)``,
``metric(name, **labels)``, ``wait_idle()``, ``wait_for(condition, what, timeout)``, ``records(**fields)``,
``wait_records(count, **fields)``, ``log_text(start)``, ``processes()`` (pid → title), ``engine_pid()``,
``signal_engine(signal.SIGKILL)``, ``port_closed()``.
``env={"PYTHONPATH": …}`` adds a folder, say for a second ``--middleware`` that plants faults.

At the end of its scope a server is ended with everything that it started; a process that outlives its server fails
the test. When a test fails, its server's log since the test began is shown. Tests here have 240 s each unless they say
otherwise.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
from tests.live.ahead import Ahead, Say, serve, shared_server
from tests.live.turns import go_first
from tests.live.vllm_server import ROOT, VllmServer

StartVllm = Callable[..., VllmServer]
_log_starts = pytest.StashKey[dict[VllmServer, int]]()
_ahead = pytest.StashKey[Ahead]()


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    here = Path(__file__).parent
    for item in items:
        if item.path.is_relative_to(here):
            item.add_marker(pytest.mark.live)
            if not item.get_closest_marker("timeout"):
                item.add_marker(pytest.mark.timeout(240))


@pytest.fixture(scope="session", autouse=True)
def _served_first() -> None:
    go_first()


@pytest.fixture(scope="session")
def say(request: pytest.FixtureRequest) -> Say:
    """Print a line past pytest's capture, so that a long start is seen to be alive."""
    reporter = request.config.pluginmanager.get_plugin("terminalreporter")
    capture = request.config.pluginmanager.get_plugin("capturemanager")

    def write(text: str) -> None:
        if reporter is not None and capture is not None:
            with capture.global_and_fixture_disabled():
                reporter.ensure_newline()
                reporter.write_line(text)

    return write


@pytest.fixture(scope="session")
def engine_paths() -> dict[str, str]:
    """The cached environment's paths; a missing environment is an error, never a skip."""
    done = subprocess.run(
        [sys.executable, str(ROOT / "scripts" / "environment" / "engine_env.py"), "--check", "--json"],
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        pytest.fail(done.stderr.strip(), pytrace=False)
    paths: dict[str, str] = json.loads(done.stdout)
    return paths


@pytest.fixture(scope="session")
def launch_vllm(
    engine_paths: dict[str, str], tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Callable[..., VllmServer]]:
    """Launch without waiting; whatever is still running when the session ends is ended here."""
    launched: list[VllmServer] = []

    def launch(*, shim: bool = True, args: Sequence[str] = (), env: Mapping[str, str] | None = None) -> VllmServer:
        server = VllmServer(engine_paths, tmp_path_factory.mktemp("vllm"), shim=shim, args=args, env=env)
        launched.append(server)
        return server

    yield launch
    for server in launched:
        server.stop(gently=False)


@pytest.fixture(scope="session")
def ahead(launch_vllm: Callable[..., VllmServer], request: pytest.FixtureRequest) -> Ahead:
    """Where every server comes from whose options are known before its test runs."""
    request.config.stash[_ahead] = Ahead(launch_vllm, request.session.items)
    return request.config.stash[_ahead]


vllm = shared_server("vllm", scope="session")


@pytest.fixture
def fresh_vllm(ahead: Ahead, request: pytest.FixtureRequest, say: Say) -> Iterator[VllmServer]:
    """This test's own server."""
    yield from serve(ahead.take(request.node.nodeid), say, gently=False)


@pytest.fixture
def launched_vllm(ahead: Ahead, request: pytest.FixtureRequest) -> Iterator[VllmServer]:
    """The same, not waited for."""
    server = ahead.take(request.node.nodeid)
    yield server
    server.stop(gently=False)


@pytest.fixture
def start_vllm(launch_vllm: Callable[..., VllmServer], request: pytest.FixtureRequest, say: Say) -> Iterator[StartVllm]:
    """Start further servers for this test."""
    lent: list[Iterator[VllmServer]] = []

    def start(**options: Any) -> VllmServer:
        lent.append(serve(launch_vllm(**options), say, gently=False))
        server = next(lent[-1])
        request.node.stash.setdefault(_log_starts, {})[server] = server.log.stat().st_size
        return server

    yield start
    for lending in lent:
        next(lending, None)


def servers_of(item: pytest.Item) -> list[VllmServer]:
    used = getattr(item, "funcargs", {}).values()
    return [value for value in used if isinstance(value, VllmServer)]


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_call(item: pytest.Item) -> None:
    starts = item.stash.setdefault(_log_starts, {})
    starts |= {server: server.log.stat().st_size for server in servers_of(item)}
    if _ahead in item.config.stash:
        item.config.stash[_ahead].prepare()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    report = yield
    if report.failed and report.when == "call":
        for server, start in item.stash.get(_log_starts, {}).items():
            text = "\n".join(server.log_text(start).splitlines()[-80:])
            report.sections.append((f"vLLM's log since this test began ({server.log})", text))
    return report
