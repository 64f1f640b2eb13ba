"""The links of the documentation lead to what is there."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PAGES = sorted(page for folder in (ROOT, ROOT / "contract", ROOT / "docs") for page in folder.glob("*.md"))
FENCED = re.compile(r"^ *(```+|~~~+).*?(^ *\1|\Z)", re.MULTILINE | re.DOTALL)
CODE = re.compile(r"(`+)(?!`)(?:(?!\n\s*\n).)+?(?<!`)\1(?!`)", re.DOTALL)  # within one paragraph
LINKS = (
    re.compile(r"""\]\(\s*<?([^\s)>]+)>?(?:\s+["'(][^)]*)?\)"""),  # [text](target "title")
    re.compile(r"^ {0,3}\[(?!\^)[^\]]+\]:\s*<?([^\s>]+)", re.MULTILINE),  # [name]: target
    re.compile(r"""<(?:a|img)\s(?:[^>]*\s)?(?:href|src)=["']([^"']+)"""),
)


def links(text: str) -> list[str]:
    """Where a page leads to, the web and what is code excepted."""
    prose = CODE.sub("", FENCED.sub("", text))
    found = [link for kind in LINKS for link in kind.findall(prose)]
    return [link for link in found if not link.startswith(("http://", "https://", "mailto:"))]


def anchors(text: str) -> set[str]:
    """Of its headings, as GitHub makes them, and of its elements."""
    text = FENCED.sub("", text)
    found = set(re.findall(r' id="([^"]+)"', text))
    seen: Counter[str] = Counter()
    for heading in re.findall(r"^#+ (.*)$", text, re.MULTILINE):
        slug = re.sub(r"[^\w -]", "", heading.lower()).replace(" ", "-")
        found.add(f"{slug}-{seen[slug]}" if seen[slug] else slug)
        seen[slug] += 1
    return found


@pytest.mark.parametrize("page", PAGES, ids=lambda path: str(path.relative_to(ROOT)))
def test_every_link_leads_somewhere(page: Path) -> None:
    """To a file, and to a heading where it names one."""
    for link in links(page.read_text(encoding="utf-8")):
        name, _, anchor = link.partition("#")
        target = (page.parent / name).resolve() if name else page
        assert target.exists(), link
        assert not anchor or anchor in anchors(target.read_text(encoding="utf-8")), link


def test_links_of_every_kind_are_seen_and_code_is_none() -> None:
    text = """
[`a`](a.md) [b](b.md#c "with a title") ![c](<c.png>) [d][e] <a class="x" href="f.md">f</a> <img src='g.svg'>
[w](https://w.org) <a href="mailto:h@i.org">h</a> `[no](no.md)`

[e]: e.md "title"
[^note]: no link

~~~sh
# [no](no.md)
~~~
"""
    assert links(text) == ["a.md", "b.md#c", "c.png", "e.md", "f.md", "g.svg"]


def test_headings_that_are_repeated_are_counted_and_comments_in_code_are_none() -> None:
    text = """# One *two*: `three_4`\n## Again\n## Again\n## Again\n```sh\n# comment\n```\n<a id="five">"""
    assert anchors(text) == {"one-two-three_4", "again", "again-1", "again-2", "five"}
