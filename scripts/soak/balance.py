"""Whether a round left what it should have and nothing else.  Pure: looks and records in, sentences out."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from prometheus_client.parser import text_string_to_metric_families

from soak.streams import Plan

Record = Mapping[str, Any]
Look = Mapping[str, Any]
Labels = frozenset[tuple[str, str]]
NOTHING_LEFT = ("open", "inside", "waiting", "running")
AS_BEFORE = ("tasks", "descriptors")
SECONDS_TOLERANCE = 1e-6
"""Records have milliseconds with three digits; of each half of the last may be missing."""


def of_records(plans: Sequence[Plan], records: Sequence[Record]) -> Iterator[str]:
    """One record a stream, and each says what its caller did."""
    by_name = Counter(record["request_id"] for record in records)
    wrong = {plan.name: by_name[plan.name] for plan in plans if by_name[plan.name] != 1}
    if wrong:
        yield f"{len(wrong)} streams do not have one record: {dict(list(wrong.items())[:3])}"
    if len(records) != len(plans):
        yield f"{len(records)} records of {len(plans)} streams"
    leaves = {plan.name: plan.leaves_after for plan in plans}
    for record in records:
        after = leaves.get(record["request_id"])
        expected = ("completed", None) if after is None else ("cancelled", "generating" if after else "queued")
        found = (record["outcome"], record["disconnect_phase"])
        if found != expected:
            yield f"{record['request_id']} was {expected} and its record says {found}"


def of_metrics(records: Sequence[Record], before: str, after: str, *, generated: int | None) -> Iterator[str]:
    """What the metrics rose by is what the records add up to; ``generated`` is the engine's own count of tokens, None
    where the records cannot have one."""
    rose = _rose(before, after)
    gone = [record for record in records if record["client_disconnected"]]
    wasted = [record for record in gone if record["wasted"]]
    expected: dict[tuple[str, Labels], float] = {}
    for (outcome, code), count in Counter((one["outcome"], one["error_code"] or "none") for one in records).items():
        expected["lastword_requests_total", frozenset({("outcome", outcome), ("code", code)})] = count
    for phase, count in Counter(one["disconnect_phase"] for one in gone).items():
        expected["lastword_client_disconnects_total", frozenset({("phase", phase)})] = count
    expected["lastword_wasted_tokens_total", frozenset()] = sum(one["completion_tokens"] or 0 for one in wasted)
    for name in ("queue_time", "generation_time"):
        known = [one[f"{name}_ms"] for one in records if one[f"{name}_ms"] is not None]
        expected[f"lastword_{name}_seconds_count", frozenset()] = len(known)
        expected[f"lastword_{name}_seconds_sum", frozenset()] = sum(known) / 1000
    for key, value in expected.items():
        tolerance = SECONDS_TOLERANCE * len(records) if key[0].endswith("_sum") else 0.0
        if abs(rose.pop(key, 0.0) - value) > tolerance:
            yield f"{key[0]} {dict(key[1])} rose by {_rose(before, after).get(key, 0.0)}, the records say {value}"
    left = {key: value for key, value in rose.items() if value and key[0].endswith("_total") and key[0] not in _BESIDES}
    if left:
        yield f"metrics that no record explains: {left}"
    told = sum(record["completion_tokens"] or 0 for record in records)
    if generated is not None and told != generated:
        yield f"the engine made {generated} tokens, the records have {told}"


_BESIDES = frozenset({"lastword_wasted_seconds_total"})
"""From the first token until the engine had stopped, which no record has by itself."""


def _rose(before: str, after: str) -> dict[tuple[str, Labels], float]:
    first, second = _samples(before), _samples(after)
    return {key: value - first.get(key, 0.0) for key, value in second.items()}


def _samples(text: str) -> dict[tuple[str, Labels], float]:
    return {
        (sample.name, frozenset(sample.labels.items())): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
        if sample.name.startswith("lastword_") and "le" not in sample.labels and not sample.name.endswith("_created")
    }


def of_process(look: Look, baseline: Look) -> Iterator[str]:
    """Nothing is open, and tasks and descriptors are as many as before."""
    for name in NOTHING_LEFT:
        if look[name]:
            yield f"{name}: {look[name]} are left"
    for name in AS_BEFORE:
        if look[name] != baseline[name]:
            yield f"{name}: {look[name]}, before the rounds {baseline[name]}"


def of_memory(looks: Sequence[Look], *, objects: int, resident: int) -> Iterator[str]:
    """From the second round to the last nothing grows by more than that: Python's objects, bytes of resident memory.

    The first round is left out: it fills pools and caches.
    """
    second, last = looks[1], looks[-1]
    if last["objects"] - second["objects"] > objects:
        yield f"objects: {second['objects']} after the second round, {last['objects']} after the last"
    if last["resident"] is not None and last["resident"] - second["resident"] > resident:
        yield f"memory: {second['resident']:,} bytes after the second round, {last['resident']:,} after the last"
