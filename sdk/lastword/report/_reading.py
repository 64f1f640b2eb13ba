"""Reading records from files: of any size, set aside by rotation or compressed, from several at once in order of time.

A line that is no record is counted and named, and the rest goes on.  A record that comes again is counted once: a file may
lie beside its compressed copy, and patterns match both.
"""

from __future__ import annotations

import gzip
import heapq
import os
import re
import sys
import zlib
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any, BinaryIO, Final

from lastword.report._record import NotARecordError, parse

STDIN: Final = "-"
MOST_BYTES: Final = 1024 * 1024
"""Of a line; a longer one is no record."""
MOST_NAMED: Final = 10
WINDOW: Final = 100_000
_MOST_OPEN: Final = 100  # files
_A_TIME: Final = 1000  # lines between two words on how far it is
_SET_ASIDE: Final = re.compile(r"(?P<base>.+?)(?:\.(?P<number>\d+)|-(?P<date>\d{8,14}))?(?:\.gz)?")

Item = tuple[float, datetime, dict[str, Any]]


@dataclass(slots=True)
class Reading:
    """How reading went.  ``on_progress`` is told how many more bytes have been read, now and then."""

    since: datetime | None = None
    until: datetime | None = None
    on_progress: Callable[[int], None] = lambda _: None
    read: int = 0
    left_out: int = 0
    """Records outside of ``since`` and ``until``."""
    repeated: int = 0
    """Records that had been read already: request id, attempt, side and ``received_at`` are theirs."""
    broken: int = 0
    named: list[str] = field(default_factory=list)
    """The first lines that are no records, with file, number and reason."""
    unreadable: list[str] = field(default_factory=list)
    """Files that could not be read, or not to their end."""

    def records(self, paths: Sequence[str]) -> Iterator[tuple[datetime, dict[str, Any]]]:
        """The records of the files with when each was received, about in the order in which they ended."""
        streams = [self._stream(family) for family in families(paths)]
        merged: Iterable[Item] = streams[0] if len(streams) == 1 else heapq.merge(*streams, key=lambda item: item[0])
        seen = _Seen()
        for _, received, record in merged:
            if seen.before((record["request_id"], record["attempt"], record["side"], received)):
                self.repeated += 1
            elif (self.since is None or received >= self.since) and (self.until is None or received < self.until):
                self.read += 1
                yield received, record
            else:
                self.left_out += 1

    def _stream(self, paths: Sequence[str]) -> Iterator[Item]:
        files: Iterable[BinaryIO | None] = (self._opened(path) for path in paths)
        if len(paths) <= _MOST_OPEN:
            files = list(files)  # all at once, for a server at work may go on renaming them
        for path, raw in zip(paths, files, strict=True):
            try:
                if raw is not None:
                    yield from self._file(path, raw)
            except (OSError, EOFError, zlib.error) as error:
                self._not_read(path, error)

    def _opened(self, path: str) -> BinaryIO | None:
        try:
            return open(path, "rb") if path != STDIN else sys.stdin.buffer
        except OSError as error:
            self._not_read(path, error)
        except AttributeError:  # there is no sys.stdin then
            self.unreadable.append(f"{named(path)}: it is closed")
        return None

    def _file(self, path: str, raw: BinaryIO) -> Iterator[Item]:
        told, has_place = 0, raw.seekable()
        try:
            for number, (line, whole) in enumerate(_lines(_unpacked(raw)), 1):
                if number % _A_TIME == 0 and has_place:
                    told, before = raw.tell(), told
                    self.on_progress(told - before)
                if not line.strip():
                    continue
                try:
                    received, record = parse(line) if whole else _too_long()
                except NotARecordError as error:
                    self._name(path, number, error)
                else:
                    yield received.timestamp() + (record["total_time_ms"] or 0) / 1000, received, record
            if has_place:
                self.on_progress(raw.tell() - told)
        finally:
            if path != STDIN:
                raw.close()

    def _not_read(self, path: str, error: Exception) -> None:
        self.unreadable.append(f"{named(path)}: {getattr(error, 'strerror', None) or error}")

    def _name(self, path: str, number: int, error: NotARecordError) -> None:
        self.broken += 1
        if len(self.named) < MOST_NAMED:
            self.named.append(f"{named(path)}:{number}: {error}")


class _Seen:
    """The latest records, at least `WINDOW` of them: copies are read side by side, and so their records come together."""

    def __init__(self) -> None:
        self._latest: set[int] = set()
        self._older: set[int] = set()

    def before(self, what: object) -> bool:
        """Whether it came before; it has from now on."""
        mark = hash(what)  # of 64 bits, which are a tenth of what they stand for
        if mark in self._latest or mark in self._older:
            return True
        if len(self._latest) >= WINDOW:
            self._latest, self._older = set(), self._latest
        self._latest.add(mark)
        return False


def families(paths: Sequence[str]) -> list[list[str]]:
    """The files in groups of which each is one file's history, oldest first; each file once.

    Two of the same age are copies, one compressed, and no history: the second begins a group of its own.
    """
    groups: dict[tuple[str, int], list[str]] = {}
    seen: set[object] = set()
    ages: Counter[tuple[str, tuple[int, float]]] = Counter()
    for path in paths:
        same = _identity(path)
        if same not in seen:
            seen.add(same)
            copy = ages[_base(path), _age(path)]
            ages[_base(path), _age(path)] += 1
            groups.setdefault((_base(path), copy), []).append(path)
    return [sorted(group, key=_age, reverse=True) for group in groups.values()]


def older(paths: Sequence[str]) -> list[str]:
    """Files that rotation set aside beside those that are named, and that are not named themselves."""
    given = {_identity(path) for path in paths}
    found = []
    for path in paths:
        folder, name = os.path.split(path)
        if path != STDIN and _base(path) == path and os.path.isdir(folder or "."):
            beside = (os.path.join(folder, each) for each in sorted(os.listdir(folder or ".")) if each.startswith(name))
            found += [each for each in beside if _base(each) == path and _identity(each) not in given]
    return found


def same_history(one: str, other: str) -> bool:
    """Whether both are of one file, as it is and as rotation set it aside."""
    return STDIN not in (one, other) and os.path.realpath(_base(one)) == os.path.realpath(_base(other))


def size(paths: Sequence[str]) -> int | None:
    """Bytes to be read; None where nobody can tell."""
    if STDIN in paths:
        return None
    return sum(os.path.getsize(path) for path in paths if os.path.isfile(path))


def named(path: str) -> str:
    """As a person knows it."""
    return "standard input" if path == STDIN else path


def _identity(path: str) -> object:
    try:
        found = os.stat(path) if path != STDIN else None
    except OSError:
        found = None
    return path if found is None else (found.st_dev, found.st_ino)


def _base(path: str) -> str:
    found = _SET_ASIDE.fullmatch(path)
    return path if found is None or path == STDIN else found["base"]


def _age(path: str) -> tuple[int, float]:
    """The larger the older: numbers count up, dates down, and the file itself is the newest."""
    found = _SET_ASIDE.fullmatch(path)
    if found is None or (found["number"] is None and found["date"] is None):
        return 0, 0
    return 1, int(found["number"]) if found["number"] else 1 / int(found["date"])


def _unpacked(raw: BinaryIO) -> BinaryIO:
    """What is in a file, compressed or not, whatever its name."""
    start: bytes = raw.peek(2)[:2]  # type: ignore[attr-defined]  # both are buffered readers
    return gzip.GzipFile(fileobj=raw) if start == b"\x1f\x8b" else raw  # type: ignore[return-value]


def _lines(file: BinaryIO) -> Iterator[tuple[bytes, bool]]:
    """Each line, and whether it is all of it: of one that is too long only the beginning is kept."""
    while line := file.readline(MOST_BYTES):
        if line.endswith(b"\n") or len(line) < MOST_BYTES:
            yield line, True
            continue
        rest = line
        while rest and not rest.endswith(b"\n"):
            rest = file.readline(MOST_BYTES)
        yield line[:100], rest == line


def _too_long() -> tuple[datetime, dict[str, Any]]:
    raise NotARecordError(f"longer than {MOST_BYTES} bytes")


def exists(path: str) -> bool:
    """Whether there is anything to be read under that name."""
    return path == STDIN or Path(path).exists()
