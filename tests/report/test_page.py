"""The page as text: whole, self-contained, and harmless whatever the records hold."""

from __future__ import annotations

import base64
import hashlib
import re
from html.parser import HTMLParser
from pathlib import Path

import pytest
from tests.report.conftest import gone, record, rejected
from tests.report.test_account import account

from lastword.report._page import page

HOSTILE = "<script>alert(1)</script>\"'&\x1b\u202e]]>"
VOID = frozenset({"meta", "link", "br"})


class Tree(HTMLParser):
    """Fails on a tag that is not closed; collects all text, tags and attributes."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.tags: list[str] = []
        self.attributes: list[tuple[str, str | None]] = []
        self.text = ""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.attributes += attrs
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.text += data


def parsed(text: str) -> Tree:
    tree = Tree()
    tree.feed(text)
    tree.close()
    assert tree.open == []
    return tree


def test_nothing_is_loaded_and_nothing_runs() -> None:
    """The policy says so, and knows the style by its hash."""
    text = page([account(record(), gone(1), rejected(2))], ["a file"])
    tree = parsed(text)
    assert "script" not in tree.tags
    assert not re.findall(r"https?://|//[a-z]", text)
    assert [name for name, value in tree.attributes if name in {"src", "style", "onclick"}] == []
    assert {value for name, value in tree.attributes if name == "href"} == {"data:,", "#main"}
    (style,) = re.findall(r"<style>(.*?)</style>", text, re.DOTALL)
    digest = base64.b64encode(hashlib.sha256(style.encode()).digest()).decode()
    assert (
        f"default-src 'none'; img-src data:; base-uri 'none'; form-action 'none'; style-src 'sha256-{digest}'" in text
    )


def test_what_records_hold_is_only_ever_text() -> None:
    """A model's name can be anything that a caller sends."""
    taken = [record(model=HOSTILE), record(1, model="m"), gone(2, model="$title ${style}")]
    text = page([account(*taken)], [HOSTILE], [HOSTILE])
    assert "<script" not in text
    assert "\x1b" not in text
    assert "\u202e" not in text
    tree = parsed(text)
    assert tree.text.count("<script>alert(1)</script>") == 3
    assert "$title ${style}" in tree.text


@pytest.mark.parametrize("number", [1, 2])
def test_each_chart_has_a_title_a_sentence_and_its_numbers_as_a_table(number: int) -> None:
    """With two accounts, a panel for each."""
    made = [account(record(), gone(1), rejected(2))] * number
    text = page(made, ["a file"] * number)
    tree = parsed(text)
    assert tree.tags.count("figure") == tree.tags.count("figcaption") == tree.tags.count("details") == 4
    labels = [value for name, value in tree.attributes if name == "aria-label" and value and value.endswith(".")]
    assert len(labels) == 4 * number
    assert all(("before: " in label or "after: " in label) == (number == 2) for label in labels)
    assert "1 completed, 1 disconnected, 1 rejected" in tree.text


@pytest.mark.parametrize(
    "taken",
    [
        [rejected()],
        [record(total_time_ms=None, queue_time_ms=None, time_to_first_token_ms=None, generation_time_ms=None)],
        [gone(completion_tokens=None, model=None)],
        [record(side="client")],
        [record(received_at="0001-01-01T00:00:00+14:00"), record(received_at="9999-12-31T23:59:59.999999-11:00")],
        [record(total_time_ms=9e14, queue_time_ms=9e14, generation_time_ms=0)],
    ],
)
def test_odd_accounts_have_a_page_too(taken: list[dict[str, object]]) -> None:
    """Nothing known, nothing counted, or all of time."""
    for accounts in ([account(*taken)], [account(record()), account(*taken)]):
        parsed(page(accounts, ["x"] * len(accounts)))


def test_a_page_of_much_traffic_is_small() -> None:
    """Its size is that of its charts, however much there was."""
    one = record()
    taken = [{**one, "request_id": f"{n}", "model": f"m{n}", "total_time_ms": n * 10.0} for n in range(20_000)]
    assert len(page([account(*taken)], ["x"])) < 300_000


def test_the_style_and_the_page_are_in_the_distribution() -> None:
    """They stand beside the code."""
    import lastword.report as package

    folder = Path(package.__file__).parent / "page"
    assert sorted(each.name for each in folder.iterdir()) == ["page.html", "style.css"]
