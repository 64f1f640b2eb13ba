"""Holds what a client reported, and what the server counted, against a vector; the worst fault is the verdict."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from lastword.conformance._faults import Fault
from lastword.conformance._outcomes import differences
from lastword.conformance._results import Verdict

if TYPE_CHECKING:
    from lastword.testing import Received, ScriptedServer


def reported(expect: Mapping[str, Any], result: Mapping[str, Any], *, gave_up: bool = False) -> Iterator[Fault]:
    """What is wrong with the client's own account; ``gave_up``: it sent fewer requests than the rules would have it send."""
    sides = (expect["outcome"], result["outcome"])
    for member, reason in differences(expect, dict(result)):
        if member == "code" and "completed" in sides:  # that of a call which one side takes for whole says nothing more
            continue
        yield Fault(_badness(member, sides, expect, result, gave_up=gave_up), reason)


def _badness(
    member: str, sides: tuple[str, str], expect: Mapping[str, Any], result: Mapping[str, Any], *, gave_up: bool
) -> Verdict:
    wanted, said = sides
    if member in ("outcome", "category", "retryable", "code"):
        if member == "outcome" and said == "completed":
            return Verdict.SILENT
        if member == "outcome" and wanted == "completed":
            # What it met was broken; that a retry would have mended it is another matter.
            return Verdict.DETAIL if gave_up else Verdict.FALSE_ALARM
        return Verdict.WRONG_CODE
    if member == "text" and sides == ("completed", "completed") and result["text"] in expect["text"]:
        return Verdict.SILENT  # a piece is missing, and the rest was called whole
    return Verdict.DETAIL


def observed(
    expect: Mapping[str, Any], server: ScriptedServer, calm: Callable[[str], str], *, claims_whole: bool = False
) -> Iterator[Fault]:
    """What is wrong by the server's own count; ``calm`` takes out what differs between runs.

    ``claims_whole``: the client reported a whole answer. Too few requests, and it cannot have got what it reports.
    """
    requests = server.requests
    too_few = Verdict.SILENT if claims_whole else Verdict.DETAIL
    elsewhere = [
        (number, each)
        for number, each in enumerate(requests, 1)
        if number > expect.get("requests", number) and _target(each) != _target(requests[0])
    ]
    count = len(requests) - len(elsewhere)
    yield from _counted("requests", count, expect.get("requests"), Verdict.OVER_RETRY, too_few)
    for number, request in elsewhere:  # a redirect that is followed is no retry
        yield Fault(Verdict.DETAIL, f"request {number} went elsewhere: {request.method} {request.path}")
    # One that carried no request is a library's provision, and comes and goes.
    used = len({request.connection for request in requests})
    yield from _counted("connections", used, expect.get("connections"), Verdict.LEAK)
    yield from _waited(expect, requests)
    for number, request in enumerate(requests, 1):
        if request.stayed is not None:
            yield Fault(
                Verdict.LEAK, f"request {number}: the client had not left within {request.stayed * 1000:.0f} ms"
            )
        for difference in request.differences:
            yield Fault(Verdict.DETAIL, f"request {number}: {calm(difference)}")
        # Who gives a whole answer up may leave at once: that it did is told already, and how soon is chance.
        if request.unsent and (claims_whole or expect["outcome"] != "completed"):
            yield Fault(Verdict.DETAIL, f"request {number}: the client left before the answer was over")
        elif not request.answered and not request.problems:
            yield Fault(Verdict.DETAIL, f"request {number}: its script was not played to the end")


def _target(request: Received) -> tuple[str, str]:
    return request.method, request.path.partition("?")[0]  # another query does not make a retry another request


def _counted(
    what: str, count: int, wanted: int | None, too_many: Verdict, too_few: Verdict = Verdict.DETAIL
) -> Iterator[Fault]:
    if wanted is None or count == wanted:
        return
    verdict = too_many if count > wanted else too_few
    yield Fault(verdict, f"the server counted {count} {what}, not {wanted}")


def _waited(expect: Mapping[str, Any], requests: list[Received]) -> Iterator[Fault]:
    gaps = [(after.at - (before.ended_at or after.at)) * 1000 for before, after in pairwise(requests)]
    for number, (gap, wanted) in enumerate(zip(gaps, expect.get("gaps_ms", ()), strict=False), 1):
        if gap < wanted.get("min", 0):
            yield Fault(Verdict.DETAIL, f"retry {number} came earlier than {wanted['min']} ms after the answer")
        if gap > wanted.get("max", gap):
            yield Fault(Verdict.DETAIL, f"retry {number} came later than {wanted['max']} ms after the answer")
