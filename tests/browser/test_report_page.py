"""The page of `lastword report` in a real browser: read on any screen, in the light and in the dark, on paper, and by ear."""

from __future__ import annotations

import asyncio
import base64
from itertools import pairwise
from pathlib import Path

import pytest
from selenium.webdriver import ActionChains, Chrome
from selenium.webdriver.common.by import By
from tests.browser.conftest import prefer, resize
from tests.browser.test_scoreboard_page import CONTRAST
from tests.report.traffic import evening

from lastword.report._account import Account
from lastword.report._page import page
from lastword.report._reading import Reading

WIDTHS = (360, 480, 768, 1280, 1600)
# Texts of an axis that overlap, and those that leave the page.
OVERLAPS = """
const poor = [];
for (const svg of document.querySelectorAll(".along, .up")) {
  const texts = [...svg.querySelectorAll("text")].filter((each) => getComputedStyle(each).visibility === "visible");
  const boxes = texts.map((each) => each.getBoundingClientRect());
  boxes.forEach((box, index) => {
    if (box.left < 0 || box.right > innerWidth) poor.push(["outside", texts[index].textContent]);
    for (const other of boxes.slice(index + 1))
      if (box.left < other.right && other.left < box.right && box.top < other.bottom && other.top < box.bottom)
        poor.push(["over another", texts[index].textContent]);
  });
}
return poor;
"""
PALE = """
const canvas = getComputedStyle(document.body).backgroundColor;
return [...new Set([...document.querySelectorAll(".plot rect:not(.hit)")].map((each) => getComputedStyle(each).fill))]
  .filter((fill) => fill === canvas || fill === "rgb(0, 0, 0)" || fill === "none");
"""


def read(*paths: Path) -> Account:
    account = Account()
    for received, record in Reading().records([str(path) for path in paths]):
        account.take(record, received)
    return account


@pytest.fixture(scope="module")
def addresses(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """Pages of evenings that were played: of one, and of two side by side."""
    folder = tmp_path_factory.mktemp("report")

    async def play() -> list[Account]:
        before = await evening(folder, "before", requests=60)
        after = await evening(folder, "after", requests=60, max_inflight=6, max_queued=6, queue_timeout=0.3)
        return [read(*before), read(*after)]

    before, after = asyncio.run(play())
    pages = {
        "one": page([after], ["after.jsonl"]),
        "two": page([before, after], ["before.jsonl", "after.jsonl"], ["1 line"]),
    }
    for name, text in pages.items():
        (folder / f"{name}.html").write_text(text, encoding="utf-8")
    return {name: (folder / f"{name}.html").as_uri() for name in pages}


@pytest.fixture(params=["one", "two"])
def address(request: pytest.FixtureRequest, addresses: dict[str, str]) -> str:
    return addresses[request.param]


def test_charts_are_drawn_and_nothing_is_loaded(browser: Chrome, address: str) -> None:
    """Each bar is as wide and high as what it shows."""
    browser.get(address)
    assert browser.execute_script("return performance.getEntriesByType('resource').length") == 0
    plots = browser.find_elements(By.CSS_SELECTOR, ".plot")
    assert len(plots) == (4 if address.endswith("one.html") else 8)
    for plot in plots:
        assert plot.rect["height"] > 100
        bars = [bar.rect for bar in plot.find_elements(By.CSS_SELECTOR, "rect:not(.hit)")]
        assert bars
        assert max(bar["height"] for bar in bars) > 5
        assert all(bar["y"] + bar["height"] <= plot.rect["y"] + plot.rect["height"] + 1 for bar in bars)
        assert all(bar["x"] + bar["width"] <= plot.rect["x"] + plot.rect["width"] + 1 for bar in bars)


@pytest.mark.parametrize("width", WIDTHS)
def test_it_fits_every_screen(browser: Chrome, address: str, width: int) -> None:
    """The page never scrolls sideways, tables in their boxes do; words of an axis do not lie on each other."""
    resize(browser, width, 800)
    browser.get(address)
    assert browser.execute_script("return document.documentElement.scrollWidth") == width
    assert browser.execute_script(OVERLAPS) == []
    sizes = browser.execute_script(
        "return [...document.querySelectorAll('text')].map((each) => parseFloat(getComputedStyle(each).fontSize))"
    )
    assert min(sizes) >= 12


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_everything_can_be_read(browser: Chrome, address: str, scheme: str) -> None:
    """4.5 to 1, tables included; every bar has a colour that is not the page's."""
    prefer(browser, scheme)
    browser.get(address)
    browser.execute_script("for (const each of document.querySelectorAll('details')) each.open = true")
    found = browser.execute_script(CONTRAST, 4.5)
    assert found["looked"] > 100
    assert found["poor"] == []
    assert browser.execute_script(PALE) == []


def test_a_bar_says_what_it_shows_when_it_is_pointed_at(browser: Chrome, address: str) -> None:
    """Wherever in its column."""
    browser.get(address)
    whole = browser.find_elements(By.CSS_SELECTOR, ".plot g .hit")[3]
    ActionChains(browser).move_to_element(whole).perform()
    group = whole.find_element(By.XPATH, "..")
    title = group.find_element(By.CSS_SELECTOR, "title").get_attribute("textContent") or ""
    assert ": " in title
    shade = "return parseFloat(getComputedStyle(arguments[0]).fillOpacity)"
    assert browser.execute_script(shade, whole) == pytest.approx(0.1)


def test_it_can_be_heard(browser: Chrome, address: str) -> None:
    """Heads in order, a language, names for charts and boxes, and each chart's numbers as a table."""
    browser.get(address)
    levels = browser.execute_script(
        "return [...document.querySelectorAll('h1, h2, h3')].map((each) => Number(each.tagName[1]))"
    )
    assert levels[0] == 1
    assert all(later - earlier <= 1 for earlier, later in pairwise(levels))
    assert browser.execute_script("return document.documentElement.lang") == "en"
    for chart in browser.find_elements(By.CSS_SELECTOR, ".plot"):
        assert chart.aria_role == "image" or chart.get_attribute("role") == "img"
        assert (chart.get_attribute("aria-label") or "").endswith(".")
    for table in browser.find_elements(By.CSS_SELECTOR, "figure details"):
        table.find_element(By.CSS_SELECTOR, "summary").click()
        assert table.find_element(By.CSS_SELECTOR, "tbody th[scope=row]").is_displayed()
    boxes = browser.find_elements(By.CSS_SELECTOR, ".scroll")
    assert all(box.get_attribute("aria-label") and box.get_attribute("tabindex") == "0" for box in boxes)


def test_it_can_be_printed(browser: Chrome, addresses: dict[str, str]) -> None:
    """On a few pages."""
    browser.get(addresses["two"])
    printed = base64.b64decode(browser.execute_cdp_cmd("Page.printToPDF", {"printBackground": True})["data"])
    assert printed.startswith(b"%PDF")
    assert 1 <= printed.count(b"/Type /Page\n") <= 8
