"""What two clients make of the same endings: the stock openai package, and lastword. Both are really run.

The endings are the contract's ``ending/*`` vectors, played from a scripted server; ``ask_stock`` and ``ask_lastword`` also
serve against any other server.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from lastword._contract import load
from lastword.testing import ScriptedServer

MESSAGES: Final = ({"role": "user", "content": "Say something about waiting."},)

# In the order of the table; the words say what is on the wire, nothing about what is right.
LABELS: Final[Mapping[str, str]] = {
    "ending/whole": "finish_reason, [DONE], clean end",
    "ending/no-done": "finish_reason, no [DONE], clean end (1)",
    "ending/no-finish-no-done": "no finish_reason, no [DONE], clean end",
    "ending/half-event": "half an event, clean end",
    "ending/empty-body": "status 200, empty body",
    "ending/error-event": "`event: error` without an error member",
    "ending/close-framing": "no framing, FIN in mid-answer",
    "ending/cut-chunked": "chunked, FIN before the last chunk",
    "ending/reset": "RST in mid-answer",
    "ending/error-data": '`data: {"error": ...}`',
    "ending/stall": "silence in mid-answer, timers of 0.5 s",
}
BY_CHOICE: Final = "ending/no-done"
"""The one that nothing on the wire proves broken: the note under the table, (1)."""
NOTE: Final = (
    "(1) Every word may be there, but nothing on the wire says so: that this counts as incomplete is the contract's "
    "choice, and a profile can relax it."
)
_SECONDS: Final = 0.5  # the timers of both clients


@dataclass(frozen=True, slots=True)
class Report:
    """What a client told its caller: in words, and whether the answer looked complete."""

    said: str
    complete: bool


@dataclass(frozen=True, slots=True)
class Row:
    """One ending and the reports on it, by client."""

    id: str
    ending: str
    broken: bool
    reports: Mapping[str, Report]

    def silent(self, client: str) -> bool:
        """Whether that client took the broken answer for a complete one."""
        return self.broken and self.reports[client].complete


def play_endings(clients: Mapping[str, Callable[[str], Report]]) -> Iterator[Row]:
    """Play each ending to each client, which gets the server's base URL; yield a row as soon as it is known."""
    for name, label in LABELS.items():
        vector = load(f"vectors/client/{name.replace('/', '.')}.json")
        reports: dict[str, Report] = {}
        for client, ask in clients.items():
            with ScriptedServer(vector["server"], strict=False) as server:
                reports[client] = ask(server.base_url)
        yield Row(name, label, vector["expect"]["outcome"] != "completed", reports)


def ask_stock(base_url: str, *, model: str = "m", headers: Mapping[str, str] | None = None) -> Report:
    """Stream an answer through the installed openai package, without its retries."""
    import openai

    with openai.OpenAI(base_url=base_url, api_key="demo", max_retries=0, timeout=_SECONDS) as client:
        try:
            return _complete(_read(client.chat.completions.create, model, headers))
        except Exception as error:  # noqa: BLE001 - whatever it raises is the report
            code = getattr(error, "code", None)
            return Report(type(error).__name__ + (f": {code}" if code else ""), complete=False)


def ask_lastword(base_url: str, *, model: str = "m", headers: Mapping[str, str] | None = None) -> Report:
    """Stream an answer through lastword, without its retries."""
    from lastword import Client, LastwordError, RetryPolicy, Timeouts

    timeouts = Timeouts(idle=_SECONDS, first_token=5, total=20)
    with Client(base_url=base_url, api_key="demo", retry=RetryPolicy(max_attempts=1), timeouts=timeouts) as client:
        try:
            return _complete(_read(client.chat.completions.create, model, headers))
        except LastwordError as error:
            return Report(f"{error.outcome}: {error.code}", complete=False)


def _read(create: Callable[..., Any], model: str, headers: Mapping[str, str] | None) -> str:
    """Give the text of a stream: the loop that both clients are read with."""
    text = ""
    for chunk in create(model=model, messages=list(MESSAGES), stream=True, extra_headers=dict(headers or {})):
        for choice in chunk.choices or ():
            text += choice.delta.content or ""
    return text


def markdown(header: Sequence[str], rows: Sequence[Row]) -> str:
    """Give a Markdown table; a broken ending that a client took for a complete answer is bold."""
    lines = ["| " + " | ".join(header) + " |", "|" + "---|" * len(header)]
    for row in rows:
        cells = [row.ending, *(_cell(row, client) for client in row.reports)]
        lines.append("| " + " | ".join(cells) + " |")
    return "\n".join(lines) + "\n"


def as_json(rows: Sequence[Row]) -> list[dict[str, Any]]:
    """Give the rows as JSON values."""
    return [
        {
            "id": row.id,
            "ending": row.ending,
            "broken": row.broken,
            "reports": {client: {"said": each.said, "complete": each.complete} for client, each in row.reports.items()},
        }
        for row in rows
    ]


def _cell(row: Row, client: str) -> str:
    said = row.reports[client].said
    return f"**{said}**" if row.silent(client) else said


def _complete(text: str) -> Report:
    words = text if len(text) <= 12 else text[:9] + "..."
    return Report(f'complete: "{words}"', complete=True)
