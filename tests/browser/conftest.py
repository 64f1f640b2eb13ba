"""A real browser without a screen, and the pages to open in it."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from selenium.webdriver import Chrome, ChromeOptions, ChromeService
from tests.conformance.example_runs import checkout_with, many_runs

from generators import scoreboard

COMMITTED = Path(__file__).parents[2] / "docs/conformance.html"
BROWSERS = ("chromium", "chromium-browser", "google-chrome")
FLAGS = (
    # Chromium will not run as root with its sandbox; the pages are our own.
    *("--headless=new", "--no-sandbox", "--disable-gpu", "--hide-scrollbars"),
    # Nothing that talks to anybody.
    *(
        "--disable-quic",
        "--no-first-run",
        "--disable-background-networking",
        "--disable-component-update",
        "--disable-sync",
    ),
)


@pytest.fixture(scope="module")  # it is gone before other tests measure time
def _chromium(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Chrome]:
    binary = next(filter(None, map(shutil.which, BROWSERS)), None)
    driver = shutil.which("chromedriver")
    if binary is None or driver is None:
        pytest.fail(
            "The scoreboard is tested in a real browser: install Chromium and its driver "
            "(Debian: apt-get install chromium chromium-driver)."
        )
    options = ChromeOptions()
    options.binary_location = binary
    for flag in (*FLAGS, f"--user-data-dir={tmp_path_factory.mktemp('browser')}"):
        options.add_argument(flag)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    browser = Chrome(options=options, service=ChromeService(driver))
    try:
        yield browser
    finally:
        browser.quit()


@pytest.fixture
def browser(_chromium: Chrome) -> Iterator[Chrome]:
    """The browser, with the defaults back; a test in which the page complained fails."""
    resize(_chromium, 1280, 900)
    prefer(_chromium, "light")
    complaints(_chromium)
    yield _chromium
    assert complaints(_chromium) == []


def complaints(browser: Chrome) -> object:
    """What came to the console since this was asked last: errors of scripts, and what the page's policy forbade."""
    return browser.get_log("browser")  # type: ignore[no-untyped-call]  # selenium has no type for it


def resize(browser: Chrome, width: int, height: int) -> None:
    """A viewport of exactly this size; a window cannot be as narrow as a telephone."""
    metrics = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": False}
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", metrics)


def prefer(browser: Chrome, scheme: str) -> None:
    features = [{"name": "prefers-color-scheme", "value": scheme}]
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": features})


@pytest.fixture(scope="session")
def invented(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The address of a page of invented reports, as full as it will ever be."""
    root = checkout_with(tmp_path_factory.mktemp("checkout"), many_runs())
    page = root / "docs/conformance.html"
    page.write_text(scoreboard.render(root)[page], encoding="utf-8")
    return page.as_uri()


@pytest.fixture(params=["invented", *(["committed"] if COMMITTED.exists() else [])])
def page(request: pytest.FixtureRequest, invented: str) -> str:
    """The address of each page there is: the invented one, and the one that is committed."""
    return invented if request.param == "invented" else COMMITTED.as_uri()
