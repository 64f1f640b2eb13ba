"""Elements of a page, with the text of others made harmless on its way in: no part of a page is made of strings."""

from __future__ import annotations

import base64
import hashlib
from xml.etree.ElementTree import Element

from lastword.conformance.show._printable import printable

Child = Element | str


def tag(name: str, *children: Child | None, end: str = "", **attributes: str | float | None) -> Element:
    """An element; ``class_`` is class, ``aria_label`` is aria-label.  ``end`` is written behind it."""
    made = {
        key.rstrip("_").replace("_", "-"): printable(value) if isinstance(value, str) else f"{value:.6g}"
        for key, value in attributes.items()
        if value is not None
    }
    element = Element(name, made)
    element.tail = end or None
    last: Element | None = None
    for child in children:
        if isinstance(child, Element):
            element.append(child)
            last = child
        elif child and last is None:
            element.text = (element.text or "") + printable(child)
        elif child and last is not None:
            last.tail = (last.tail or "") + printable(child)
    return element


def scroll(table: Element, label: str) -> Element:
    """A box of its own that scrolls sideways, reachable by keyboard, so that the page does not."""
    return tag("div", table, class_="scroll", role="region", aria_label=label, tabindex="0", end="\n")


def digest(text: str) -> str:
    """What a Content-Security-Policy knows a style by."""
    return base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
