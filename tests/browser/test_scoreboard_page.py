"""The scoreboard's page in a real browser: found, read and worked by eye, by mouse and by keyboard, on any screen."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from selenium.webdriver import ActionChains, Chrome, Keys
from selenium.webdriver.common.by import By
from selenium.webdriver.remote.webelement import WebElement
from selenium.webdriver.support.select import Select
from selenium.webdriver.support.wait import WebDriverWait
from tests.browser.conftest import prefer, resize

CONTRAST = Path(__file__).with_name("contrast.js").read_text(encoding="utf-8")

TABLES = """
return [...document.querySelectorAll(".matrix")].map((table) => [
  table.querySelectorAll("thead th[scope=col]").length,
  [...table.tBodies[0].rows].map((row) => [
    row.querySelectorAll("th[scope=row]").length, [...row.querySelectorAll("td")].map((cell) => cell.innerText)
  ])
]);
"""
TEXTS = "return [...document.querySelectorAll(arguments[0])].map((each) => each.innerText)"
ATTRIBUTES = "return [...document.querySelectorAll(arguments[0])].map((each) => each.getAttribute(arguments[1]))"
OPEN_ALL = "for (const each of document.querySelectorAll('details')) each.open = true"
LEVELS = "return [...document.querySelectorAll('h1, main h2, main h3, main h4')].map((head) => Number(head.tagName[1]))"
PRINTED = """
const first = document.querySelector("main .finding pre");
return first.checkVisibility({contentVisibilityAuto: true}) && first.getBoundingClientRect().height;
"""


def all_of(browser: Chrome, selector: str) -> list[WebElement]:
    return browser.find_elements(By.CSS_SELECTOR, selector)


def one(browser: Chrome, selector: str) -> WebElement:
    return browser.find_element(By.CSS_SELECTOR, selector)


def texts(browser: Chrome, selector: str) -> list[str]:
    """What is shown in each, asked for at once: a page has hundreds of cells."""
    found: list[str] = browser.execute_script(TEXTS, selector)
    return found


def attributes(browser: Chrome, selector: str, name: str) -> list[str]:
    found: list[str] = browser.execute_script(ATTRIBUTES, selector, name)
    return found


def press(browser: Chrome, *keys: str) -> None:
    ActionChains(browser).send_keys(*keys).perform()


def focused(browser: Chrome) -> str:
    """The address that the focused link leads to."""
    return str(browser.switch_to.active_element.get_attribute("href"))


def sheet_is_open(browser: Chrome) -> bool:
    return bool(browser.execute_script("return document.getElementById('sheet').open"))


def test_the_matrix_is_there_and_nothing_is_loaded(browser: Chrome, page: str) -> None:
    browser.get(page)
    assert one(browser, "h1").text == "Conformance scoreboard"
    tables = browser.execute_script(TABLES)
    assert tables
    for columns, rows in tables:
        assert columns >= 2
        assert len(rows) >= 2
        for heads, cells in rows:
            assert (heads, len(cells)) == (1, columns - 1)
            assert all(any(sign in cell for sign in "✓✗▲△◇○–") for cell in cells)
            assert all(any(letter.isalpha() for letter in cell) for cell in cells)
    assert browser.execute_script("return performance.getEntriesByType('resource').length") == 0


def test_a_click_on_a_red_cell_shows_its_wire(browser: Chrome, page: str) -> None:
    browser.get(page)
    cell = one(browser, ".matrix td.grave > a")
    group = str(cell.get_attribute("href")).partition("#")[2]
    cell.click()
    assert sheet_is_open(browser)
    shown = all_of(browser, "#sheet .finding")
    assert len(shown) == len(all_of(browser, f"[id='{group}'] .finding"))
    first = shown[0].text
    for word in ("Expected", "Said", "Differs", "Rules", "On the wire"):
        assert word in first
    wire = one(browser, "#sheet pre")
    assert wire.text.strip()
    assert "mono" in wire.value_of_css_property("font-family").lower()
    assert "SPEC.md#" in str(one(browser, "#sheet dd a").get_attribute("href"))
    one(browser, "#close").click()
    assert not sheet_is_open(browser)


def test_the_keyboard_does_it_all(browser: Chrome, invented: str) -> None:
    browser.get(invented)
    press(browser, Keys.TAB)
    assert browser.switch_to.active_element.text == "To the results"
    for _ in range(60):
        press(browser, Keys.TAB)
        if "--" in focused(browser):
            break
    start = focused(browser)
    assert "--" in start, "no cell was reached by the tab key"
    outline = browser.switch_to.active_element.value_of_css_property("outline-style")
    assert outline == "solid"
    press(browser, Keys.ENTER)
    assert sheet_is_open(browser)
    press(browser, Keys.ESCAPE)
    assert not sheet_is_open(browser)
    assert focused(browser) == start
    press(browser, Keys.ARROW_DOWN)
    below = focused(browser)
    assert below.partition("--")[0] == start.partition("--")[0]
    assert below != start
    press(browser, Keys.ARROW_RIGHT)
    beside = focused(browser)
    assert beside.partition("--")[2] == below.partition("--")[2]
    assert beside != below
    press(browser, Keys.ARROW_LEFT, Keys.ARROW_UP)
    assert focused(browser) == start


def test_the_filter_leaves_one_verdict(browser: Chrome, invented: str) -> None:
    browser.get(invented)
    before = texts(browser, ".matrix td")
    select = Select(one(browser, "#verdict"))
    for value in ("hang", "choice"):
        select.select_by_value(value)
        left = attributes(browser, "main .finding:not([hidden])", "data-verdict")
        assert left
        assert set(left) == {value}
        told = one(browser, f"#verdict option[value={value}]").text
        assert told.endswith(f"({len(left)})")
        assert str(len(left)) in one(browser, "#count").text
        hits = ".matrix tr:not(.total) td.hit .count"
        assert 0 < sum(map(int, texts(browser, hits))) <= len(left)
        one(browser, hits).click()
        assert set(attributes(browser, "#sheet .finding", "data-verdict")) == {value}
        press(browser, Keys.ESCAPE)
    select.select_by_value("")
    assert texts(browser, ".matrix td") == before


def test_every_text_can_be_read(browser: Chrome, page: str) -> None:
    """A contrast of 4.5 to 1 at least (WCAG 2.2, 1.4.3), in the matrix, the details, the sheet and under a filter."""
    browser.get(page)
    browser.execute_script(OPEN_ALL)

    def look() -> dict[str, Any]:
        found: dict[str, Any] = browser.execute_script(CONTRAST, 4.5)
        assert found["poor"] == []
        return found

    verdict = Select(one(browser, "#verdict"))
    for scheme in ("light", "dark"):
        prefer(browser, scheme)
        background = browser.execute_script("return getComputedStyle(document.body).backgroundColor")
        assert (background == "rgb(255, 255, 255)") == (scheme == "light")
        verdict.select_by_index(0)
        assert look()["looked"] > 500
        verdict.select_by_index(1)
        look()
        one(browser, ".matrix td.hit > a").click()
        look()
        press(browser, Keys.ESCAPE)


def test_the_check_of_contrast_sees_what_is_poor(browser: Chrome, invented: str) -> None:
    browser.get(invented)
    browser.execute_script("document.querySelector('h1').style.color = '#888'")
    assert [row[3] for row in browser.execute_script(CONTRAST, 4.5)["poor"]] == ["Conformance scoreboard"]


def test_only_the_tables_scroll_sideways(browser: Chrome, page: str, invented: str) -> None:
    browser.get(page)
    browser.execute_script(OPEN_ALL)
    wide: Callable[[str], Any] = lambda element: browser.execute_script(f"return {element}.scrollWidth")  # noqa: E731
    for width in (360, 768, 1600)[: None if page == invented else 1]:  # the narrowest is the hardest
        resize(browser, width, 800)
        assert wide("document.documentElement") == width
        one(browser, ".matrix td.grave > a").click()
        assert wide("document.documentElement") == width
        assert wide("document.getElementById('sheet')") <= width
        press(browser, Keys.ESCAPE)


def test_the_panel_fills_a_small_screen_and_scrolls_alone(browser: Chrome, invented: str) -> None:
    resize(browser, 380, 800)
    browser.get(invented)
    one(browser, ".matrix td.grave > a").click()
    left, padding = browser.execute_script("""
        const at = (selector) => document.querySelector(selector).getBoundingClientRect().left;
        return [at("#sheet"), at("#sheet .finding") - at("#sheet")];
    """)
    assert left == 0
    assert padding >= 8
    overflow = "return getComputedStyle(document.documentElement).overflowY"
    assert browser.execute_script(overflow) == "hidden"
    press(browser, Keys.ESCAPE)
    assert browser.execute_script(overflow) == "visible"


def test_a_table_that_goes_on_says_so(browser: Chrome, invented: str) -> None:
    resize(browser, 380, 800)
    browser.get(invented)
    sign = one(browser, ".matrix .more")
    assert sign.is_displayed()
    browser.execute_script("document.querySelector('.scroll').scrollTo(99999, 0)")
    WebDriverWait(browser, 10).until(lambda _: not sign.is_displayed())
    resize(browser, 4000, 800)
    browser.execute_script("document.querySelector('.scroll').scrollTo(0, 0)")
    assert not sign.is_displayed()


def test_the_areas_are_explained_and_stand_back_on_a_small_screen(browser: Chrome, invented: str) -> None:
    for width, told in ((1400, True), (380, False)):
        resize(browser, width, 800)
        browser.get(invented)
        areas = one(browser, ".areas")
        assert areas.find_element(By.TAG_NAME, "li").is_displayed() is told
        areas.find_element(By.TAG_NAME, "summary").send_keys(Keys.ENTER)
        assert areas.find_element(By.TAG_NAME, "li").is_displayed() is not told


def test_head_and_first_column_stay_in_sight(browser: Chrome, invented: str) -> None:
    resize(browser, 360, 700)
    browser.get(invented)
    place = """
        const [corner, row, last] = ["thead th", "tbody th", "tbody tr:last-child td:last-child"].map(
          (each) => document.querySelector(".matrix " + each));
        const box = document.querySelector(".scroll");
        box.scrollTo(arguments[0], arguments[1]);
        const at = corner.getBoundingClientRect();
        last.scrollIntoView({inline: "nearest", block: "nearest"});
        const seen = last.getBoundingClientRect().right <= box.getBoundingClientRect().right + 1;
        box.scrollTo(arguments[0], arguments[1]);
        return [at.left, at.top, row.getBoundingClientRect().left, seen];
    """
    browser.execute_script("document.querySelector('.scroll').scrollIntoView()")
    stuck = browser.execute_script(place, 200, 200)  # past the caption
    assert stuck == browser.execute_script(place, 400, 300)
    assert stuck[0] == stuck[2]
    assert stuck[3]


def test_it_is_whole_without_scripts_and_on_paper(browser: Chrome, invented: str) -> None:
    """A cell's link leads to details of its own in the page, and print shows all of them."""
    browser.get(invented)
    targets = [href.partition("#")[2] for href in attributes(browser, ".matrix td > a", "href")]
    kept = attributes(browser, "details:not(.areas)", "id")
    assert sorted(targets) == sorted(kept)
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": "print"})
    try:
        height = WebDriverWait(browser, 10).until(lambda _: browser.execute_script(PRINTED))
        assert height > 20
        assert not one(browser, "#filter").is_displayed()
    finally:
        browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": ""})


def test_it_is_named_for_who_cannot_see_it(browser: Chrome, page: str) -> None:
    browser.get(page)
    assert browser.execute_script("return document.documentElement.lang") == "en"
    regions = all_of(browser, "[role=region]")
    assert all(region.get_attribute("aria-label") and region.get_attribute("tabindex") == "0" for region in regions)
    assert all(len(table.find_elements(By.TAG_NAME, "caption")) == 1 for table in all_of(browser, ".matrix"))
    names = attributes(browser, ".matrix td > a", "aria-label")
    assert names
    assert len(names) == len(set(names))
    levels = browser.execute_script(LEVELS)
    assert all(after <= before + 1 for before, after in zip([0, *levels], levels, strict=False))
