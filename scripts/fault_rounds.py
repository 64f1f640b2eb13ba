#!/usr/bin/env python3
"""Play the fault tests on real vLLM many times in a row, and count: once proves nothing where the engine has races.

    make faults                            ten times (about five minutes each)
    make faults FAULTS="--times 3"
    make faults FAULTS="--only term,kill"  some of them: --list names them with their tests

A round that fails does not end the run unless --exit-first says so; what pytest said of it is printed.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
import time
import xml.etree.ElementTree as ET
from collections import Counter
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
LIVE = ROOT / "tests" / "live"
FAULTS: dict[str, tuple[str, ...]] = {
    "kill": (
        "test_endpoints::test_a_dead_engine_is_dead",
        "test_sdk::test_a_server_that_goes_away_is_never_taken_for_an_answer",
        "test_sidecar::test_an_engine_that_is_killed_and_comes_back",
        "test_sidecar::test_in_front_of_vllm",
        "test_shim_endings::test_an_engine_that_falls_silent_and_then_dies",
        "test_shim_routes::test_an_engine_that_dies_in_the_middle_ends_both_protocols_honestly",
    ),
    "stop": (
        "test_endpoints::test_an_engine_that_hangs_is_stalled_until_it_goes_on",
        "test_shim_endings::test_an_engine_that_falls_silent_and_then_dies",
    ),
    "term": (
        "test_shim_endings::test_sigterm_with_time_to_finish",
        "test_shim_endings::test_sigterm_without_time_to_finish",
    ),
    "pause": ("test_endpoints::test_a_paused_engine_is_not_ready_and_what_comes_waits",),
    "sleep": ("test_endpoints::test_a_sleeping_engine_refuses_at_once_until_it_is_wide_awake",),
    "overload": (
        "test_shim::test_many_requests_at_once_each_get_their_own_last_word",
        "test_shim_admission::test_of_a_burst_exactly_those_are_refused_that_do_not_fit",
        "test_shim_admission::test_vllms_own_refusals_are_told_like_the_shims",
        "test_shim_admission::test_what_cannot_begin_in_time_is_refused_at_once_by_the_measured_pace",
    ),
    "disconnect-queued": (
        "test_shim::test_a_client_that_leaves_the_queue_disturbs_nobody",
        "test_shim_account::test_one_that_left_the_queue_has_no_times_that_never_were",
    ),
    "disconnect-generating": (
        "test_shim::test_a_client_that_leaves_stops_the_generation",
        "test_shim_account::test_tokens_of_clients_that_left_add_up_to_the_engines",
    ),
    "deadline-queued": (
        "test_shim_admission::test_a_deadline_that_passes_in_the_shims_line",
        "test_shim_admission::test_a_deadline_that_passes_in_vllms_queue",
    ),
    "deadline-generating": (
        "test_shim::test_a_deadline_of_the_caller_ends_the_generation",
        "test_shim_admission::test_a_deadline_that_passes_while_generating_frees_the_place",
        "test_shim_routes::test_a_deadline_stops_the_engine",
    ),
}
"""Faults and the tests that cause them: file and function in tests/live, with all their parameters."""


def nodes(faults: list[str]) -> list[str]:
    """Their tests as pytest names them, in the order in which the files have them: the last of some takes the server along."""
    tests = {test.partition("::")[::2] for fault in faults for test in FAULTS[fault]}
    texts = {file: (LIVE / f"{file}.py").read_text("utf-8") for file, _ in tests}
    return [
        f"{LIVE}/{file}.py::{name}"
        for file, name in sorted(tests, key=lambda test: (test[0], texts[test[0]].index(f"def {test[1]}(")))
    ]


def play(faults: list[str]) -> tuple[int, str, dict[str, list[bool]]]:
    """One round: pytest's exit status, what it printed, and by test how each of its parameters fared."""
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder) / "report.xml"
        argv = [sys.executable, "-m", "pytest", "--quiet", f"--junit-xml={report}", *nodes(faults)]
        done = subprocess.run(argv, cwd=ROOT, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
        fared: dict[str, list[bool]] = {}
        if report.exists():
            for case in ET.parse(report).iter("testcase"):
                test = f"{case.get('classname', '').rpartition('.')[2]}::{case.get('name', '').partition('[')[0]}"
                fared.setdefault(test, []).append(not len(case))  # a child tells of a failure, an error or a skip
    return done.returncode, done.stdout + done.stderr, fared


def passed(fault: str, fared: dict[str, list[bool]]) -> bool:
    """Whether every test of that fault ran and passed."""
    return all(fared.get(test) and all(fared[test]) for test in FAULTS[fault])


def run(faults: list[str], times: int, *, exit_first: bool) -> Counter[str]:
    """All rounds; how often each fault passed."""
    counts = Counter(dict.fromkeys(faults, 0))
    for number in range(1, times + 1):
        started = time.monotonic()
        status, said, fared = play(faults)
        failed = [fault for fault in faults if not passed(fault, fared)]
        counts.update(fault for fault in faults if fault not in failed)
        tests, seconds = sum(map(len, fared.values())), time.monotonic() - started
        print(
            f"round {number} of {times}: {', '.join(failed) or 'all passed'} ({tests} tests, {seconds:.0f} s)",
            flush=True,
        )
        if failed or status:
            print(said, flush=True)
            if exit_first:
                break
    return counts


def main() -> int:
    """Exit status: 0 every fault passed every time, 1 one did not, 130 interrupted."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--times", type=int, default=10, help="rounds (10)")
    parser.add_argument("--only", default=",".join(FAULTS), metavar="NAMES", help="faults, with commas between")
    parser.add_argument("--exit-first", action="store_true", help="end with the first round that fails")
    parser.add_argument("--list", action="store_true", help="name the faults and their tests, and do nothing else")
    options = parser.parse_args()
    faults = options.only.split(",")
    unknown = [fault for fault in faults if fault not in FAULTS]
    if unknown:
        parser.error(f"there is no fault {unknown[0]!r}; there are {', '.join(FAULTS)}")
    if options.list:
        print("\n".join(f"{fault}: {', '.join(FAULTS[fault])}" for fault in faults))
        return 0
    try:
        counts = run(faults, options.times, exit_first=options.exit_first)
    except KeyboardInterrupt:
        return 130
    print("\n".join(f"{fault:22} {counts[fault]:3} of {options.times}" for fault in faults))
    return 0 if all(counts[fault] == options.times for fault in faults) else 1


if __name__ == "__main__":
    sys.exit(main())
