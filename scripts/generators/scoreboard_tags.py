"""Elements of the scoreboard's page, with the text of others made harmless on its way in."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Iterator
from xml.etree.ElementTree import Element

from .scoreboard_words import shown

Child = Element | str


def tag(name: str, *children: Child | None, end: str = "", **attributes: str | None) -> Element:
    """An element; ``class_`` is class, ``data_red`` is data-red. ``end`` is written behind it."""
    made = {key.rstrip("_").replace("_", "-"): shown(value) for key, value in attributes.items() if value is not None}
    element = Element(name, made)
    element.tail = end or None
    last: Element | None = None
    for child in children:
        if isinstance(child, Element):
            element.append(child)
            last = child
        elif child and last is None:
            element.text = (element.text or "") + shown(child)
        elif child and last is not None:
            last.tail = (last.tail or "") + shown(child)
    return element


def scroll(table: Element, label: str, *, low: bool = False) -> Element:
    """A box of its own that scrolls, reachable by keyboard, so that the page does not; its frame shows if there is more."""
    box = tag("div", table, class_="scroll low" if low else "scroll", role="region", aria_label=label, tabindex="0")
    return tag("div", box, class_="frame")


def prose(text: str) -> Iterator[Child]:
    """A text of our own, with what stands in backticks as code."""
    for number, part in enumerate(text.split("`")):
        yield tag("code", part) if number % 2 else part


def digest(text: str) -> str:
    """What a Content-Security-Policy knows a script or style by."""
    return base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
