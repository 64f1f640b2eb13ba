"""The pipeline of every run: cases in, each skipped or played, the baseline laid over the results, a ``Run`` out.

How a case is played is the caller's: a client behind an adapter, a function in this process, a server at a URL.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable
from concurrent.futures import Future, ThreadPoolExecutor, wait

from lastword._codes import CONTRACT_VERSION
from lastword.conformance._baseline import Baseline
from lastword.conformance._cases import Profile, Selection
from lastword.conformance._results import (
    PASSED,
    Case,
    CaseResult,
    ConformanceError,
    Entry,
    Implementation,
    Listener,
    Run,
    Verdict,
)

Play = Callable[[Case], CaseResult]
"""Plays one case and judges it. Called from ``jobs`` threads at once. What it raises ends the run."""


def run(
    selection: Selection,
    play: Play,
    *,
    implementation: Implementation,
    jobs: int = 1,
    listener: Listener | None = None,
    baseline: Baseline | None = None,
    profile: Profile | None = None,
    stop: Callable[[], None] | None = None,
) -> Run:
    """Play what was selected in ``jobs`` threads, and give the results in the order of the selection.

    A case whose needs the implementation did not declare is skipped. When the run is given up (Ctrl-C, or ``play``
    raised), ``stop`` must make the plays that are under way end; no thread is left when this returns or raises.
    """
    told = _Told(listener)
    told.begins(implementation, len(selection.cases))
    results: dict[str, CaseResult] = {}
    for case in selection.cases:
        if skipped := _skipped(case, implementation):
            results[case.name] = skipped
            told.ended(skipped)
    to_play = [case for case in selection.cases if case.name not in results]
    results.update(_play_all(to_play, play, jobs=jobs, told=told, stop=stop))
    ordered = [results[case.name] for case in selection.cases]
    return laid_over(ordered, selection, implementation=implementation, baseline=baseline, profile=profile)


def laid_over(
    results: Iterable[CaseResult],
    selection: Selection,
    *,
    implementation: Implementation,
    baseline: Baseline | None = None,
    profile: Profile | None = None,
) -> Run:
    """Give the run that results make, all of the selection's or only some, with the baseline and the profile laid over."""
    ordered = list(results)
    known = baseline or Baseline()
    failing = [result.case.name for result in ordered if result.verdict not in PASSED]
    return Run(
        kind=selection.kind,
        implementation=implementation,
        contract=CONTRACT_VERSION,
        profile=profile.name if profile else None,
        entries=tuple(_entry(result, known, profile) for result in ordered),
        stale=known.stale(selection, failing),
    )


def exit_status(run: Run) -> int:
    """0 if all is right or known, 1 if a case failed or a baseline line is stale.

    Raises ``ConformanceError`` if nothing was played: a run of skips only is no success.
    """
    if not run.played:
        lacking = ", ".join(sorted(run.lacking))
        remedy = (
            "declare what it has with --capabilities" if run.kind == "server" else "let the adapter declare what it has"
        )
        raise ConformanceError(f"nothing was played: every case needs what is not declared: {lacking}: {remedy}")
    return 1 if run.failures or run.stale else 0


def _skipped(case: Case, implementation: Implementation) -> CaseResult | None:
    lacking = sorted(case.needs - implementation.capabilities)
    if not lacking:
        return None
    return CaseResult(case, Verdict.SKIPPED, (f"not declared: {', '.join(lacking)}",))


def _entry(result: CaseResult, baseline: Baseline, profile: Profile | None) -> Entry:
    known = None if result.verdict in PASSED else baseline.reason(result.case.name)
    return Entry(result, known, required=profile is None or result.case.id in profile.vectors)


def _play_all(
    cases: list[Case], play: Play, *, jobs: int, told: _Told, stop: Callable[[], None] | None
) -> dict[str, CaseResult]:
    def one(case: Case) -> CaseResult:
        told.plays(case)
        result = play(case)
        told.ended(result)
        return result

    with ThreadPoolExecutor(max(jobs, 1), thread_name_prefix="conformance") as pool:
        futures = [pool.submit(one, case) for case in cases]
        try:
            _wait(futures)
        except BaseException:  # Ctrl-C included: nothing may go on behind the caller's back
            for future in futures:
                future.cancel()
            told.no_more()  # that a play was killed says nothing of what it played
            if stop is not None:
                stop()
            raise
    return {future.result().case.name: future.result() for future in futures}


def _wait(futures: list[Future[CaseResult]]) -> None:
    """Wait for all; raise what the first that failed raised, without waiting for the others."""
    pending = set(futures)
    while pending:
        # A wait without end would not notice Ctrl-C on every platform.
        ended, pending = wait(pending, timeout=1.0, return_when="FIRST_COMPLETED")
        for future in ended:
            future.result()


class _Told:
    """Tells the listener, one thing at a time: it need not know of threads."""

    def __init__(self, listener: Listener | None) -> None:
        self._listener = listener
        self._lock = threading.Lock()

    def begins(self, implementation: Implementation, cases: int) -> None:
        with self._lock:
            if self._listener is not None:
                self._listener.begins(implementation, cases)

    def plays(self, case: Case) -> None:
        with self._lock:
            if self._listener is not None:
                self._listener.plays(case)

    def ended(self, result: CaseResult) -> None:
        with self._lock:
            if self._listener is not None:
                self._listener.ended(result)

    def no_more(self) -> None:
        with self._lock:
            self._listener = None
