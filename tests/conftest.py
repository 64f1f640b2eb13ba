"""Fixtures that every kind of test shares."""

from __future__ import annotations

import signal
from collections.abc import Generator

import pytest
from hypothesis import settings

# No deadline for an example, since machines are shared, and nothing is written into the checkout.
settings.register_profile("lastword", deadline=None, database=None, max_examples=200)
settings.load_profile("lastword")

# A shell script starts background jobs with SIGINT ignored, and the processes that tests start would inherit that.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """A test that cannot run fails and names what it lacks: a skip would read as green."""
    report = yield
    if report.skipped and not hasattr(report, "wasxfail"):
        refuse_skip(report, item.nodeid)
    return report


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report(
    collector: pytest.Collector,
) -> Generator[None, pytest.CollectReport, pytest.CollectReport]:
    """The same for a whole file."""
    report = yield
    if report.skipped:
        refuse_skip(report, collector.nodeid)
    return report


def refuse_skip(report: pytest.TestReport | pytest.CollectReport, name: str) -> None:
    reason = report.longrepr[2] if isinstance(report.longrepr, tuple) else report.longrepr
    report.outcome = "failed"
    report.longrepr = f"{name} could not run, and nothing is skipped here: {reason}"


@pytest.fixture
def anyio_backend() -> str:
    """Async tests (`@pytest.mark.anyio`) run on asyncio, the loop that httpx's pools and vLLM use."""
    return "asyncio"


@pytest.fixture(autouse=True)
def _no_ambient_configuration(monkeypatch: pytest.MonkeyPatch) -> None:
    """Keep the caller's own keys, URLs and proxies out of the tests: a client may read them from the environment."""
    for name in (
        "LASTWORD_BASE_URL",
        "LASTWORD_API_KEY",
        "OPENAI_BASE_URL",
        "OPENAI_API_KEY",
        "OPENAI_ORG_ID",
        "OPENAI_PROJECT_ID",
    ):
        monkeypatch.delenv(name, raising=False)
    for name in ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.lower(), raising=False)
