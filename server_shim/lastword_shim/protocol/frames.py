"""A stream's bytes cut into whole events, unchanged, so that fine ones can be passed on as they came."""

from __future__ import annotations

import re
from typing import Final

# A line end after a line end.  Atomic, or backtracking would take the two bytes of one CRLF for two ends.
_BLANK_LINE: Final = re.compile(rb"(?>\r\n|\n|\r)(?>\r\n|\n|\r)")


class FrameSplitter:
    """Cuts ``text/event-stream`` bytes after each blank line (WHATWG HTML §9.2.6: LF, CR or CRLF end a line).

    The frames joined are the input: nothing is added, dropped or changed.  A CR ends its line at once; an LF that comes
    with the next chunk then leads the next frame, which a decoder fed with the frames in order understands.
    """

    def __init__(self) -> None:
        self._held = bytearray()

    @property
    def held(self) -> int:
        """Bytes of an unfinished frame."""
        return len(self._held)

    def feed(self, chunk: bytes) -> list[bytes]:
        """Return the frames that ``chunk`` completes."""
        if not self._held and chunk.endswith(b"\n\n"):
            first = _BLANK_LINE.search(chunk)
            if first is not None and first.end() == len(chunk):  # one event a chunk, as engines send them
                return [chunk]
        frames = []
        start, look_from = 0, max(0, len(self._held) - 3)
        self._held += chunk
        while (found := _BLANK_LINE.search(self._held, max(start, look_from))) is not None:
            frames.append(bytes(self._held[start : found.end()]))
            start = found.end()
        del self._held[:start]
        return frames

    def rest(self) -> bytes:
        """Take what is left of an unfinished frame."""
        rest, self._held = bytes(self._held), bytearray()
        return rest
