"""An adapter of a client under test: a process that speaks the protocol of ``contract/schemas/adapter.json``.

Whatever it does wrong becomes an ``AdapterFault`` with the verdict on the case at hand: ``hang`` (no answer in time) or
``crash`` (it ended, or it broke the protocol; a result that is no outcome of the contract counts as that, too).
"""

from __future__ import annotations

import json
import shlex
import signal
import time
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

from lastword._contract import load
from lastword.conformance._results import ConformanceError, Implementation, Verdict
from lastword.conformance._schemas import violations
from lastword.conformance.client._pipes import Child
from lastword.conformance.show._printable import shortened

PROTOCOL: Final = 1
_LEAVE: Final = 3.0  # s to leave after stop and EOF; then SIGTERM
_TERM: Final = 1.0  # s to leave after SIGTERM; then SIGKILL
_DEEPEST: Final = 64  # levels of an answer
_LABEL: Final = 200  # characters of a name or a version
_NOT_FOUND: Final = (
    ": is it on the PATH?",
    ": is the path right, from this folder, and the interpreter on its first line?",
)
_SHOWN: Final = 120  # characters of a line that is none of the protocol


class AdapterFault(Exception):
    """The adapter did not do its part in this case; it is of no use any more and must be started anew."""

    def __init__(self, verdict: Verdict, reason: str) -> None:
        super().__init__(reason)
        self.verdict = verdict
        self.reason = reason


class Adapter:
    """One process of ``command``. One thread at a time may use it; ``kill`` is for any thread.

    Raises ``ConformanceError`` if the command cannot be started.
    """

    def __init__(self, command: Sequence[str]) -> None:
        self._seq = 0
        try:
            self._child = Child(command)
        except OSError as error:
            hint = {FileNotFoundError: _NOT_FOUND["/" in command[0]], PermissionError: ": is it executable?"}.get(
                type(error), ""
            )
            raise ConformanceError(f"cannot start {shlex.join(command)}: {error.strerror}{hint}") from error
        self.kill = self._child.kill

    def start(self, limit: float) -> Implementation:
        """Shake hands; raises ``AdapterFault`` that says what came instead."""
        until = time.monotonic() + limit
        self._send({"cmd": "start", "protocol": PROTOCOL})
        hello = self._receive(until, f"no answer to start within {limit:g} s")
        if hello.get("protocol") != PROTOCOL:
            raise _broken(f"it answered start with protocol {hello.get('protocol')!r}; this runner speaks {PROTOCOL}")
        _check("hello", hello)
        known = {each["capability"] for each in load("registry.json")["capabilities"] if each["of"] == "client"}
        if unknown := sorted(set(hello["capabilities"]) - known):
            raise _broken(f"it declares unknown capabilities {unknown}; known are {', '.join(sorted(known))}")
        return Implementation(
            _label(hello["name"]),
            _label(hello["version"]),
            _label(hello["language"]),
            frozenset(hello["capabilities"]),
            shortened(hello.get("note", "")),
        )

    def ask(self, case: Mapping[str, Any], limit: float) -> dict[str, Any]:
        """Have one case played: ``{"result": …}`` or ``{"unable": …}``; ``AdapterFault`` if neither comes within ``limit`` s."""
        self._seq += 1
        until = time.monotonic() + limit
        self._send({"cmd": "run", "seq": self._seq, "case": case})
        answer = self._receive(until, f"no answer within {limit:g} s")
        seq = answer.get("seq")
        if seq != self._seq:
            earlier = isinstance(seq, int) and 0 < seq < self._seq
            raise _broken("it answered an earlier case again" if earlier else "its answer has not the seq of the case")
        _check("answer", answer)
        return answer

    def settle(self) -> None:
        """Check that nothing came after the answer; ``AdapterFault`` if something did."""
        line = self._child.waiting()
        if line is None:
            return
        again = _parsed(line).get("seq") == self._seq
        raise _broken("it answered the case twice" if again else f"after its answer came {_shown(line)}")

    @property
    def stderr(self) -> str:
        """The end of what it wrote to stderr."""
        return self._child.stderr

    # -- the end

    def leave(self) -> None:
        """Ask it to leave, without waiting."""
        self._send({"cmd": "stop"})
        self._child.close_stdin()

    def end(self, asked_at: float) -> str | None:
        """Wait until it has left, or make it; the time is that of ``leave``. Says in words what it took, if too much."""
        complaint = None
        if self._child.wait(asked_at + _LEAVE) is None:
            complaint = f"it did not leave within {_LEAVE:.0f} s of stop and EOF on stdin"
            self._child.signal(signal.SIGTERM)
            if self._child.wait(time.monotonic() + _TERM) is None:
                complaint += f", nor within {_TERM:.0f} s of SIGTERM: it was killed"
        self._child.dispose()
        return complaint

    def dispose(self) -> None:
        """Kill it and all that it started, and free what it held."""
        self._child.dispose()

    # -- lines

    def _send(self, message: Mapping[str, Any]) -> None:
        self._child.send(json.dumps(message).encode() + b"\n")

    def _receive(self, until: float, late: str) -> dict[str, Any]:
        line = self._child.line(until)
        if line is not None:
            return _parsed(line)
        if not self._child.ended:
            raise AdapterFault(Verdict.HANG, late)
        status = self._child.wait(time.monotonic() + _TERM)
        raise AdapterFault(Verdict.CRASH, f"the adapter {_ending(status)} without an answer")


def _parsed(line: bytes) -> dict[str, Any]:
    try:
        message = json.loads(line)
    except RecursionError:
        raise _too_deep() from None
    except ValueError:
        raise _broken(f"a line on its stdout is no JSON: {_shown(line)}; logs belong on stderr") from None
    if not isinstance(message, dict):
        raise _broken(f"a line on its stdout is no JSON object: {_shown(line)}")
    level: list[Any] = [message]
    for _ in range(_DEEPEST):
        level = [inner for each in level for inner in _inside(each)]
    if level:
        raise _too_deep()
    return message


def _inside(value: Any) -> Iterable[Any]:
    if isinstance(value, dict):
        return value.values()
    return value if isinstance(value, list) else ()


def _too_deep() -> AdapterFault:
    return _broken(f"a line on its stdout is nested more than {_DEEPEST} levels deep")


def _label(text: str) -> str:
    """Give what stands in a headline: one line, of a length that is read."""
    return shortened(" ".join(text.split()) or "?", _LABEL)


def _check(part: str, message: Mapping[str, Any]) -> None:
    if found := violations(f"adapter#/$defs/{part}", message):
        raise _broken(f"its {part} is not valid: {found[0].partition(': ')[2]}")


def _broken(what: str) -> AdapterFault:
    return AdapterFault(Verdict.CRASH, shortened(f"the adapter broke the protocol: {what}"))


def _shown(line: bytes) -> str:
    text = line[: 4 * _SHOWN].decode("utf-8", "replace")
    return repr(text if len(text) <= _SHOWN else text[:_SHOWN] + "…")


def _ending(status: int | None) -> str:
    if status is None:
        return "closed its stdout"
    if status < 0:
        known = -status in signal.valid_signals() and -status in set(
            signal.Signals
        )  # real-time signals have numbers only
        return f"was ended by {signal.Signals(-status).name if known else f'signal {-status}'}"
    return f"ended with exit status {status}"
