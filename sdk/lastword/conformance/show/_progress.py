"""What a person sees while a run goes on: a bar, failures so far, and what is being played. Pipes and CI see nothing."""

from __future__ import annotations

import os
import time
from collections import Counter
from contextlib import AbstractContextManager
from types import TracebackType
from typing import Final, Self

from rich.console import Console, Group
from rich.live import Live
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from lastword.conformance._results import PASSED, Case, CaseResult, Implementation, Listener, Verdict
from lastword.conformance.show._printable import printable

_A_SECOND: Final = 4  # pictures; more of them cost time that the run needs


class Progress(Listener, AbstractContextManager["Progress"]):
    """A live bar if ``console`` is a terminal with somebody before it, else silent.

    Use it as a context: leaving it, by Ctrl-C too, takes the bar away and gives the cursor back. Calls must come one at a time.
    """

    def __init__(self, console: Console) -> None:
        self._shown = console.is_interactive and console.file.isatty() and not os.environ.get("CI")
        self._total = self._done = 0
        self.implementation: Implementation | None = None
        self.results: list[CaseResult] = []
        """What came of the cases that have ended, for when the run is interrupted."""
        self._failed: Counter[Verdict] = Counter()
        self._playing: dict[str, float] = {}
        self._live = Live(get_renderable=self._picture, console=console, transient=True, refresh_per_second=_A_SECOND)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, where: TracebackType | None
    ) -> None:
        self._live.stop()

    def begins(self, implementation: Implementation, cases: int) -> None:
        """Show the bar."""
        self._total, self.implementation = cases, implementation
        if self._shown:
            self._live.start()

    def plays(self, case: Case) -> None:
        """Name the case as long as it is played."""
        self._playing[case.name] = time.monotonic()

    def ended(self, result: CaseResult) -> None:
        """Count the case; the last one takes the bar away."""
        self._playing.pop(result.case.name, None)
        self._done += 1
        self.results.append(result)
        if result.verdict not in PASSED:
            self._failed[result.verdict] += 1
        if self._done >= self._total:
            self._live.stop()

    def _picture(self) -> Group:
        done = Table.grid(padding=(0, 1), expand=True)
        done.add_column(no_wrap=True)
        done.add_column(ratio=1)
        done.add_row(f"{self._done}/{self._total}", ProgressBar(total=max(self._total, 1), completed=self._done))
        # The thread that draws does not hold the run up: it looks at a copy.
        return Group(done, self._failures(), self._cases(sorted(dict(self._playing).items(), key=lambda item: item[1])))

    def _failures(self) -> Text:
        counts = [
            f"{self._failed[verdict]} {verdict.replace('_', ' ')}" for verdict in Verdict if self._failed[verdict]
        ]
        text = ", ".join(counts) or "none"
        return Text(f"not right so far: {text}", style="red" if counts else "", no_wrap=True, overflow="ellipsis")

    def _cases(self, playing: list[tuple[str, float]]) -> Text:
        now = time.monotonic()
        parts = [f"{printable(name)} {now - since:.0f} s" if now - since >= 1 else name for name, since in playing]
        return Text(f"playing: {', '.join(parts) or '–'}", style="dim", no_wrap=True, overflow="ellipsis")


def listener(console: Console) -> Progress:
    """Give the listener for a run that is told of on ``console``."""
    return Progress(console)
