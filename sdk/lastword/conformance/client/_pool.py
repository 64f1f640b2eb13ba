"""Adapter processes for the threads of a run: started and warmed up before the first case, and anew after a fault."""

from __future__ import annotations

import queue
import threading
import time
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import fields, replace
from types import TracebackType
from typing import Any, Final, Self

from lastword.conformance._cases import API_KEY
from lastword.conformance._faults import Fault, settle
from lastword.conformance._results import Case, CaseResult, ConformanceError, Implementation, Verdict
from lastword.conformance.client._adapter import Adapter, AdapterFault
from lastword.conformance.client._player import call_of, play_client
from lastword.testing import ScriptedServer, answer, stream

START_LIMIT: Final = 60.0  # s to start, and again to answer first: a large library on a busy machine takes its time
_TRIES: Final = 2  # starts before a command that has worked once is given up
_SHOWN: Final = 2000  # characters of stderr beside an error


class AdapterPool:
    """``size`` processes of ``command``; a context that leaves none of them running.

    Every process first plays plain good exchanges that are not scored, so that no case pays for what a client loads;
    ``start_limit`` seconds for each step of that. Entering raises ``ConformanceError`` if the adapter does not get so far.
    """

    def __init__(self, command: Sequence[str], *, size: int, start_limit: float = START_LIMIT) -> None:
        self._command, self._size, self._start_limit = tuple(command), size, start_limit
        self._idle: queue.SimpleQueue[Adapter | None] = (
            queue.SimpleQueue()
        )  # None: a place whose process must be started
        self._running: set[Adapter] = set()
        self._lock = threading.Lock()
        self._stopped = False
        self._hello: Implementation | None = None  # what the first process said of itself
        self.complaints: list[str] = []
        """What the processes did wrong outside of any case, a sentence each."""
        self.stderr: dict[str, str] = {}
        """What was on stderr when an adapter failed, by the name of the case."""
        self.logs: list[str] = []
        """What the processes that left by themselves had on stderr."""

    def __enter__(self) -> Self:
        try:
            first, self.implementation = self._started()  # alone: what is wrong with one is wrong with all
            for adapter in (first, *self._others()):
                self._idle.put(adapter)
        except BaseException:
            self.stop()
            self._dispose()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if kind is None:
            self._leave()
        self.stop()
        self._dispose()

    def play(self, case: Case) -> CaseResult:
        """Play one case in the next free process; one thread a process."""
        adapter = self._taken()
        kept: Adapter | None = adapter

        def ask(message: Mapping[str, Any], limit: float) -> Mapping[str, Any]:
            try:
                return adapter.ask(message, limit)
            except AdapterFault:
                self._drop(adapter, case)  # before the server is closed: it waits for clients to leave
                raise

        try:
            result = play_client(case, ask)
            if adapter in self._running:
                adapter.settle()
            else:
                kept = None
        except AdapterFault as fault:
            self._drop(adapter, case)
            kept = None
            verdict, reasons = settle(
                [Fault(fault.verdict, fault.reason), *(Fault(result.verdict, each) for each in result.reasons)]
            )
            result = replace(result, verdict=verdict, reasons=reasons)
        finally:
            self._idle.put(kept)
        return result

    def stop(self) -> None:
        """Kill every process now; plays under way end, and none is started any more. For any thread."""
        with self._lock:
            self._stopped = True
            for adapter in self._running:
                adapter.kill()

    # -- processes

    def _others(self) -> list[Adapter]:
        with ThreadPoolExecutor(self._size) as threads:
            starting = [threads.submit(self._started) for _ in range(self._size - 1)]
            try:
                return [each.result()[0] for each in starting]
            except BaseException:  # Ctrl-C included: the threads must end, and wait for nobody
                self.stop()
                raise

    def _started(self) -> tuple[Adapter, Implementation]:
        with self._lock:
            if self._stopped:
                raise ConformanceError("the run was stopped")
            adapter = Adapter(self._command)
            self._running.add(adapter)
        doing = "start"
        try:
            implementation = adapter.start(self._start_limit)
            self._compare(implementation)
            doing = "its first, plain and whole answer"
            for streamed in (True, False):
                _warm_up(adapter, self._start_limit, streamed=streamed)
        except AdapterFault as fault:
            said = adapter.stderr.strip()[-_SHOWN:]
            self._drop(adapter)
            raise ConformanceError(
                f"the adapter does not work. At {doing}: {fault.reason}" + (f"\nIts stderr:\n{said}" if said else "")
            ) from fault
        return adapter, implementation

    def _compare(self, implementation: Implementation) -> None:
        """See that a process says of itself what the first one did: one table cannot be about two clients."""
        first = self._hello = self._hello or implementation  # the first one is started alone
        if implementation != first:
            names = [
                each.name for each in fields(first) if getattr(first, each.name) != getattr(implementation, each.name)
            ]
            was, now = (", ".join(_said(each, name) for name in names) for each in (first, implementation))
            raise AdapterFault(Verdict.CRASH, f"its copies differ: the first said {was}, this one {now}")

    def _taken(self) -> Adapter:
        """Wait for a place, and give its process."""
        idle = self._idle.get()
        try:
            return idle or self._restarted()
        except BaseException:
            self._idle.put(None)  # who waits for this place must not wait for ever
            raise

    def _restarted(self) -> Adapter:
        for _ in range(_TRIES - 1):
            try:
                return self._started()[0]
            except ConformanceError:
                if self._stopped:
                    raise
        return self._started()[0]

    def _drop(self, adapter: Adapter, case: Case | None = None) -> None:
        if case is not None:
            self.stderr.setdefault(case.name, adapter.stderr)
        with self._lock:
            self._running.discard(adapter)
        adapter.dispose()

    def _leave(self) -> None:
        """Let all leave by themselves, at the same time."""
        asked_at = time.monotonic()
        for adapter in self._running:
            adapter.leave()
        for adapter in list(self._running):
            if complaint := adapter.end(asked_at):
                self.complaints.append(complaint)
            self.logs.append(adapter.stderr)
            self._running.discard(adapter)

    def _dispose(self) -> None:
        for adapter in list(self._running):
            self._drop(adapter)


def _said(implementation: Implementation, name: str) -> str:
    value = getattr(implementation, name)
    return f"{name} {sorted(value) if isinstance(value, frozenset) else value!r}"


def _warm_up(adapter: Adapter, limit: float, *, streamed: bool) -> None:
    exchange = stream("Hel", "lo") if streamed else answer("Hello")
    with ScriptedServer([exchange] * 2, strict=False) as server:
        call = call_of({"call": {"stream": streamed}})
        adapter.ask({"base_url": server.base_url, "api_key": API_KEY, "call": call}, limit)
    adapter.settle()
