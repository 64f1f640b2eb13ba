"""One server vector on stage: the calls go out, clients leave, the server is told to stop, and everything is looked at."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from lastword.conformance._faults import Fault
from lastword.conformance._results import Case, Verdict
from lastword.conformance.server._exchange import Answer, Asking
from lastword.conformance.server._judge import judge
from lastword.conformance.server._request import Target, request_of

if TYPE_CHECKING:
    from lastword.conformance.server._engine import Engine
    from lastword.conformance.server._probe import Gauge
    from lastword.conformance.server._process import ServerProcess

ANSWER_LIMIT: Final = 30.0
"""Seconds that an answer may take where neither the vector nor whoever plays it says."""
_AT_WORK: Final = 15.0  # s in which a request must reach the engine
_SEEN_LATE: Final = 1.0  # s that a real engine's metrics get to tell it
_BLIND: Final = 0.5  # s after which it is taken to be there where nothing can be seen
_LOOK_AGAIN: Final = 0.02
_KNOCK_AGAIN: Final = 0.2
_REFUSED: Final = {"status": [200, 503], "terminal": ["done", "error"], "error": {"code": "server_shutting_down"}}


@dataclass(frozen=True, slots=True)
class Stage:
    """What is there to play with. ``engine`` is scripted, ``gauge`` tells of a real one; either may be missing.

    ``answer_limit`` is how long an answer may take where the vector says nothing.
    """

    target: Target
    engine: Engine | None = None
    gauge: Gauge | None = None
    process: ServerProcess | None = None
    answer_limit: float = ANSWER_LIMIT


@dataclass(slots=True)
class _Call:
    """A call, what is expected of it, and the task that makes it."""

    asking: Asking
    expect: Mapping[str, Any]
    task: asyncio.Task[Answer]


class Scene:
    """One case. ``play`` gives the faults; ``main`` is the call that the vector is about."""

    def __init__(self, stage: Stage, case: Case) -> None:
        self._stage, self._case, self._vector = stage, case, case.vector
        self._rules = frozenset(case.vector["requirements"])
        self._others: list[_Call] = []
        self._before = 0  # requests that a real engine is still at from the case before
        self._idle_in_time = True
        self.main: Asking | None = None

    async def play(self) -> list[Fault]:
        """Play it to its end."""
        vector = self._vector
        faults: list[Fault] = []
        self._before = await self._at_work()
        for number, each in enumerate(vector.get("also", ()), 1):
            self._others.append(self._start(each["call"], each["expect"]))
            faults += await self._until_at_work(number, self._others[-1])
        calls = [
            self._start(vector["call"], vector["expect"]) for _ in range(vector.get("load", {}).get("requests", 1))
        ]
        self.main = calls[0].asking
        if "terminate" in vector:
            faults += [fault async for fault in self._terminate(calls[0])]
        else:
            await self._conduct(calls)
        answers = await asyncio.gather(*(each.task for each in calls))
        if "disconnect" not in vector["call"] or any(answer.end == "left" for answer in answers):
            self._idle_in_time = await self._becomes_idle()
        await asyncio.gather(*(each.task for each in self._others))
        for each in calls:
            faults += self._judge(each)
        for each in self._others:
            faults += [Fault(f.verdict, f"the call beside it: {f.reason}") for f in self._judge(each)]
        faults += self._load_faults(calls)
        faults += self._engine_faults()
        return faults

    # -- the calls

    def _start(self, call: Mapping[str, Any], expect: Mapping[str, Any]) -> _Call:
        leave_after = call.get("disconnect", {}).get("after_events")
        request = request_of(self._stage.target, call, self._case.id)
        limit = expect["within_ms"] / 1000 if "within_ms" in expect else self._stage.answer_limit
        asking = Asking(self._stage.target, request, limit=limit, leave_after=leave_after)
        return _Call(asking, expect, asyncio.ensure_future(asking.run()))

    async def _conduct(self, calls: list[_Call]) -> None:
        """Do what the vector has the client do while it waits."""
        disconnect = self._vector["call"].get("disconnect", {})
        if "at_work" in disconnect:
            await self._until_at_work(len(self._others) + 1, calls[0])
        elif "after_ms" in disconnect:
            await asyncio.gather(*(each.asking.sent.wait() for each in calls))
            await asyncio.sleep(disconnect["after_ms"] / 1000)
        if "at_work" in disconnect or "after_ms" in disconnect:
            for each in calls:
                each.asking.leave()
        first = self._vector["expect"].get("first_event_within_ms")
        if first is not None and self._stage.engine is not None:
            await _first(asyncio.ensure_future(calls[0].asking.begun.wait()), seconds=first / 1000)
            self._stage.engine.hurry()

    async def _until_at_work(self, number: int, call: _Call) -> list[Fault]:
        """Wait until the engine has so many requests, or the call is over; what is wrong if neither comes."""
        await call.asking.sent.wait()
        if self._stage.engine is None and self._stage.gauge is None:
            await _first(call.task, seconds=_BLIND)
            return []

        async def at_work() -> bool:
            engine = self._stage.engine
            return call.task.done() or (len(engine.requests) if engine else await self._at_work()) >= number

        if self._stage.engine is None:  # its metrics may be late, and then it is at work all the same
            await _becomes(at_work, _SEEN_LATE)
            return []
        if await _becomes(at_work, _AT_WORK):
            return []
        return [Fault(Verdict.HANG, "the request did not reach the engine in the time allowed")]

    async def _at_work(self) -> int:
        if self._stage.engine is not None:
            return self._stage.engine.at_work
        return await self._stage.gauge.at_work() if self._stage.gauge is not None else 0

    async def _becomes_idle(self) -> bool:
        """Whether the engine works for nobody but the calls beside this one, within the vector's bound."""
        bound = self._vector["expect"].get("engine_idle_within_ms")
        if bound is None:
            return True

        async def idle() -> bool:
            others = sum(not each.task.done() for each in self._others)
            return 0 <= await self._at_work() <= max(self._before, 0) + others

        return await _becomes(idle, bound / 1000)

    # -- the end of the server

    async def _terminate(self, call: _Call) -> AsyncIterator[Fault]:
        process, wanted = self._stage.process, self._vector["terminate"]
        assert process is not None, "the capability shutdown was declared without a process"
        if wanted.get("when", "first_event" if self._vector["call"]["stream"] else "at_work") == "first_event":
            await _first(asyncio.ensure_future(call.asking.begun.wait()), seconds=_AT_WORK)
        else:
            for fault in await self._until_at_work(len(self._others) + 1, call):
                yield fault
        process.terminate()
        told_at = time.monotonic()
        while process.alive and (time.monotonic() - told_at) * 1000 < wanted["exits_within_ms"]:
            for fault in await self._knock():
                yield fault
            await asyncio.sleep(_KNOCK_AGAIN)
        if process.alive:
            yield Fault(Verdict.HANG, f"the process had not ended {wanted['exits_within_ms']} ms after SIGTERM")
            for each in (call, *self._others):
                each.asking.leave(late=True)
                await each.task
            await asyncio.to_thread(process.end)

    async def _knock(self) -> Iterator[Fault]:
        """A new request while the server stops: no connection is as good an answer as a refusal."""
        call = self._start({"stream": False}, {**_REFUSED, "within_ms": 10_000})
        answer = await call.task
        if answer.status is None and answer.end in ("refused", "closed"):
            return iter(())
        return (Fault(each.verdict, f"a new request while it stops: {each.reason}") for each in self._judge(call))

    # -- looking at it

    def _judge(self, call: _Call) -> list[Fault]:
        answer = call.asking.answer
        if answer.end == "left":
            return [] if answer.status in (None, 200) else list(self._verdicts(call, answer))
        if (
            "disconnect" in self._vector["call"]
            and call.expect is self._vector["expect"]
            and (answer.status or 0) < 400
        ):
            over = "the answer was over before the client could leave: it must take the engine some seconds"
            return [Fault(Verdict.UNABLE, over)] if answer.status else list(self._verdicts(call, answer))
        return list(self._verdicts(call, answer))

    def _verdicts(self, call: _Call, answer: Answer) -> Iterator[Fault]:
        return judge(call.expect, call.asking.request, answer, self._rules)

    def _load_faults(self, calls: list[_Call]) -> Iterator[Fault]:
        expect = self._vector["expect"]
        statuses = [each.asking.answer.status for each in calls]
        refused = sum(status is not None and status >= 400 for status in statuses)
        whole = sum(status == 200 for status in statuses)
        if refused < expect.get("refused_at_least", 0):
            yield Fault(Verdict.WRONG_CODE, f"of {len(calls)} requests at once too few were refused")
        if whole < expect.get("whole_at_least", 0):
            yield Fault(Verdict.FALSE_ALARM, f"of {len(calls)} requests at once too few were served")

    def _engine_faults(self) -> Iterator[Fault]:
        expect, engine = self._vector["expect"], self._stage.engine
        if not self._idle_in_time:
            bound = expect["engine_idle_within_ms"]
            yield Fault(Verdict.LEAK, f"the engine was still at work {bound} ms after it should have stopped (CAN-3)")
        if engine is None:
            return
        wanted, count = expect.get("upstream_requests"), len(engine.requests)
        if wanted is not None and count != wanted:
            verdict = Verdict.OVER_RETRY if count > wanted else Verdict.DETAIL
            yield Fault(verdict, f"{count} requests reached the engine, not {wanted}")
        at_most = expect.get("at_work_at_most")
        if at_most is not None and engine.most_at_work > at_most:
            yield Fault(
                Verdict.WRONG_CODE, f"the engine had {engine.most_at_work} requests at a time, not {at_most} at most"
            )
        if not count and self._has_an_answer_of_the_engine():
            yield Fault(Verdict.SILENT, "the engine was not asked: whatever the answer says, it is none of its")
        for problem in engine.problems:
            yield Fault(Verdict.DETAIL, problem)

    def _has_an_answer_of_the_engine(self) -> bool:
        """Whether what came can only be the engine's: no refusal, and no answer of the server's own."""
        vector, main = self._vector, self.main
        if main is None or "load" in vector or "terminate" in vector or not vector.get("engine"):
            return False
        return main.request.judged and main.answer.end == "complete" and (main.answer.status or 0) < 400


async def _first(task: asyncio.Task[Any] | asyncio.Future[Any], *, seconds: float) -> None:
    await asyncio.wait({task}, timeout=seconds)


async def _becomes(condition: Callable[[], Awaitable[bool]], seconds: float) -> bool:
    until = time.monotonic() + seconds
    while not await condition():
        if time.monotonic() > until:
            return False
        await asyncio.sleep(_LOOK_AGAIN)
    return True
