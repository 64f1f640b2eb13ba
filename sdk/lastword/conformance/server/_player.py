"""Plays server vectors one after the other, and judges what leaves the server.

One at a time, whatever is asked for: the engine's idleness, an overload and a shutdown are the whole server's, and the
scripted engine knows a case by its being the only one.
"""

from __future__ import annotations

import asyncio
import json
import threading
import time
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any, Final

from lastword._contract import load
from lastword.conformance._cases import Selection
from lastword.conformance._faults import Fault, settle
from lastword.conformance._results import Case, CaseResult, ConformanceError, Verdict
from lastword.conformance.server import _account as account
from lastword.conformance.server._engine import Then
from lastword.conformance.server._exchange import Answer
from lastword.conformance.server._judge import read
from lastword.conformance.server._scene import Scene, Stage

USUAL: Final = frozenset({"completions", "choices", "tools"})
"""Capabilities that a server is taken to have if nothing is said."""
_FOUND: Final = frozenset({"upstream", "engine", "context", "shutdown"})  # known from the options or the server itself
_DYING: Final = 0.3  # s
_TRIES: Final = 3
_SETTLES: Final = 30.0  # s that a real engine gets to forget the case before


class ServerPlayer:
    """``play`` is what a run calls; ``stop`` makes it end early."""

    def __init__(self, stage: Stage) -> None:
        self._stage = stage
        self._turn = threading.Lock()
        self._running: tuple[asyncio.AbstractEventLoop, asyncio.Task[Any]] | None = None
        self._stopped = False

    def play(self, case: Case) -> CaseResult:
        """Play one case and judge it."""
        with self._turn:
            if self._stopped:
                raise ConformanceError("interrupted")
            for _ in range(_TRIES):
                result = self._play(case)
                if result.verdict is not Verdict.UNABLE:  # a real engine was done before the client could leave
                    break
            return result

    def _play(self, case: Case) -> CaseResult:
        self._make_ready(case)
        scene, started = Scene(self._stage, case), time.monotonic()
        try:
            faults = asyncio.run(self._watched(scene))
        finally:
            if self._stage.engine is not None:
                self._stage.engine.finish()
        faults += self._process_faults(case, scene)
        return self._result(case, scene, faults, time.monotonic() - started)

    def stop(self) -> None:
        """End what is being played."""
        self._stopped = True
        if self._stage.process is not None:
            self._stage.process.give_up()
        if self._running is not None:
            loop, task = self._running
            loop.call_soon_threadsafe(task.cancel)

    def _make_ready(self, case: Case) -> None:
        process, engine, vector = self._stage.process, self._stage.engine, case.vector
        if process is not None and not process.alive:
            process.start()
        if engine is not None:
            listens = vector.get("listening", "yes") == "yes"
            then: Then = "repeats" if "load" in vector else "answers" if "terminate" in vector else "refuses"
            engine.begin(case.id, vector.get("engine", ()), listening=listens, then=then)
        elif self._stage.gauge is not None:
            asyncio.run(self._until_idle())

    async def _until_idle(self) -> None:
        """A real engine may still be at the case before; what it does then is no fault of this one."""
        until = time.monotonic() + _SETTLES
        assert self._stage.gauge is not None
        while not self._stopped and await self._stage.gauge.at_work() != 0 and time.monotonic() < until:  # noqa: ASYNC110
            await asyncio.sleep(0.05)

    async def _watched(self, scene: Scene) -> list[Fault]:
        task = asyncio.ensure_future(scene.play())
        self._running = asyncio.get_running_loop(), task
        if self._stopped:  # while the case was made ready
            task.cancel()
        try:
            return await task
        except asyncio.CancelledError:
            raise ConformanceError("interrupted") from None
        finally:
            self._running = None

    def _process_faults(self, case: Case, scene: Scene) -> list[Fault]:
        process = self._stage.process
        if process is None or "terminate" in case.vector:
            return []
        broke_off = scene.main is not None and scene.main.answer.end in ("closed", "reset", "truncated", "refused")
        # The kernel closes a dying process's sockets before it can be seen to have ended.
        ended = process.ends_within(_DYING) if broke_off else not process.alive
        return [Fault(Verdict.CRASH, "the server's process ended")] if ended else []

    def _result(self, case: Case, scene: Scene, faults: Iterable[Fault], seconds: float) -> CaseResult:
        assert scene.main is not None
        answer: Answer = scene.main.answer
        request = scene.main.request
        engine = self._stage.engine
        verdict, reasons = settle(faults)
        made = account.generated(self._stage.target, engine, request, answer)
        hidden = self._stage.target.without_key
        return CaseResult(
            case,
            verdict,
            tuple(map(hidden, reasons)),
            said=account.said(read(request, answer), answer, made, json.dumps(case.vector)),
            wire=account.wire(case.vector, request, answer, engine, made),
            trace=tuple(map(hidden, account.trace(answer, engine))),
            seconds=seconds,
        )


def capabilities(declared: str | None, stage: Stage) -> frozenset[str]:
    """What is declared (``a,b``; the usual ones if nothing is), and what follows from how the server is reached.

    ``-a`` takes one away that would be found. Raises ``ConformanceError`` for a word that the registry does not have, or
    that cannot be declared.
    """
    words = frozenset(filter(None, (each.strip() for each in (declared or "").split(","))))
    taken = frozenset(each.removeprefix("-") for each in words if each.startswith("-"))
    given = frozenset(each for each in words if not each.startswith("-")) or USUAL
    known = {row["capability"] for row in load("registry.json")["capabilities"] if row["of"] == "server"}
    if unknown := sorted((given | taken) - known):
        raise ConformanceError(f"--capabilities: {', '.join(unknown)}: known are {', '.join(sorted(known - _FOUND))}")
    if found := sorted(given & _FOUND):
        raise ConformanceError(
            f"--capabilities: {', '.join(found)} cannot be declared: --upstream-port, --context, the server's metrics "
            "and its command after -- bring them about"
        )
    there = {
        "upstream": stage.engine is not None,
        "engine": stage.engine is not None or stage.gauge is not None,
        "context": stage.target.context is not None,
        "shutdown": stage.process is not None,
    }
    return (given | {name for name, is_there in there.items() if is_there}) - taken


def in_order(selection: Selection) -> Selection:
    """The same cases with those last that end the server."""
    return replace(selection, cases=tuple(sorted(selection.cases, key=_ends_the_server)))


def _ends_the_server(case: Case) -> bool:
    vector: Mapping[str, Any] = case.vector
    return "terminate" in vector
