"""Which cases are played, which failures are known, and what of a baseline is stale."""

from __future__ import annotations

from pathlib import Path

import pytest

from lastword._contract import vectors
from lastword.conformance._baseline import Baseline
from lastword.conformance._cases import cases_of, load_profile, matches, select
from lastword.conformance._results import Case, CaseResult, ConformanceError, Implementation, Verdict
from lastword.conformance._run import Play, exit_status, run
from lastword.conformance._schemas import violations
from lastword.conformance.client._player import call_of, limit_of

ABLE = Implementation("a", "1", "python", frozenset({"cancel", "retry"}))


@pytest.mark.parametrize(
    ("pattern", "name", "named"),
    [
        ("a/b", "a/b", True),
        ("a/b", "a/b@7", True),
        ("a/b", "a/bc", False),
        ("a/*", "a/b-c@1", True),
        ("*", "a/b", False),
        ("*/b", "a/b", True),
        ("**", "a/b@whole", True),
        ("**/b", "a/b", True),
        ("**/b", "b", True),
        ("a/**", "a/b", True),
        ("a.b", "a/b", False),
        ("a/b@7", "a/b@7", True),
        ("a/b@7", "a/b", False),
        ("a/b@event", "a/b", True),
        ("a/b@event", "a/b@1", False),
        ("**@1", "a/b@1", True),
        ("**@1", "a/b@7", False),
        ("a/[b]", "a/b", False),
    ],
)
def test_patterns(pattern: str, name: str, named: bool) -> None:
    assert matches(pattern, name) is named


def test_segmentations_are_those_that_the_vectors_list_or_those_asked_for() -> None:
    listed, every = ({case.name for case in cases_of("client", each)} for each in ("listed", "all"))
    assert listed < every
    assert {"ending/whole", "ending/whole@1", "ending/whole@7", "ending/whole@whole"} <= every
    assert {name for name in every if name.startswith("answer/whole")} == {"answer/whole", "answer/whole@1"}
    assert {case.segmentation for case in cases_of("client", "7")} == {"7"}
    with pytest.raises(ConformanceError, match="'2' is not one of listed, all, event"):
        cases_of("client", "2")
    assert {case.segmentation for case in cases_of("server", "all")} == {"event"}
    assert select("server").elsewhere == frozenset()


def test_run_and_skip_select() -> None:
    names = [case.name for case in select("client", run=["ending/no-*"], skip=["**@1"]).cases]
    assert names == ["ending/no-done", "ending/no-finish-no-done"]


@pytest.mark.parametrize(
    ("run_patterns", "skip_patterns", "message"),
    [
        (["ending/no-don"], [], "'ending/no-don' names no client case: did you mean ending/no-done?"),
        ([], ["ending/x*"], "'ending/x*' names no client case"),
        (["ending/whole"], ["**"], "leave no case to play"),
    ],
)
def test_a_selection_of_nothing_is_refused(run_patterns: list[str], skip_patterns: list[str], message: str) -> None:
    with pytest.raises(ConformanceError) as caught:
        select("client", run=run_patterns, skip=skip_patterns)
    assert message in str(caught.value)


def test_every_call_is_a_case_of_the_adapter_protocol() -> None:
    for vector in vectors("client"):
        case = {"base_url": "http://127.0.0.1:1/v1", "api_key": "k", "call": call_of(vector)}
        assert violations("adapter#/$defs/run", {"cmd": "run", "seq": 1, "case": case}) == []


def test_a_client_has_the_time_that_the_script_takes_and_more() -> None:
    limits = {case.id: limit_of(case) for case in cases_of("client")}
    assert limits["wire/lingering-server"] == 4
    assert limits["timer/idle-progress"] > 10 + 5 * 0.6
    assert limits["retry/attempt-limit"] > 10 + 2 * 8
    assert max(limits.values()) < 60


# -- baselines


def write(tmp_path: Path, *lines: str) -> Path:
    path = tmp_path / "known.txt"
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


def test_the_first_line_that_names_a_case_gives_its_reason(tmp_path: Path) -> None:
    known = Baseline.read(write(tmp_path, "# why", "", "ending/no-*  # one # two", "**  # all"))
    assert known.reason("ending/no-done@1") == "one # two"
    assert known.reason("wire/bom") == "all"
    assert Baseline().reason("wire/bom") is None


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("ending/no-done", ":2: ending/no-done has no reason: write `ending/no-done  # why it fails`"),
        ("ending/no-done  #  ", ":2: ending/no-done has no reason"),
        ("a/b c/d  # both", ":2: 'a/b c/d' is not one pattern: one a line"),
        ("wire/bom  # again", ":2: wire/bom is listed twice"),
    ],
)
def test_a_line_that_says_too_little_is_refused_with_its_place(line: str, message: str, tmp_path: Path) -> None:
    path = write(tmp_path, "wire/bom  # it does", line)
    with pytest.raises(ConformanceError) as caught:
        Baseline.read(path)
    assert str(caught.value).startswith(f"{path}{message}")


def test_a_baseline_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(ConformanceError, match=r"none\.txt: cannot be read: .*No such file"):
        Baseline.read(tmp_path / "none.txt")


def failing(*names: str) -> Play:
    """Plays as if just these cases failed."""
    return lambda case: CaseResult(case, Verdict.SILENT if case.name in names else Verdict.RIGHT)


@pytest.mark.parametrize(
    ("line", "run_patterns", "segmentation", "is_stale"),
    [
        ("ending/no-done  # fails", [], "listed", False),
        ("ending/*  # one of them fails", [], "listed", False),
        ("ending/whole  # does not fail", [], "listed", True),
        ("ending/whole@7  # does not fail", [], "all", True),
        ("ending/whole@7  # is played under `all` only", [], "listed", False),
        ("ending/nothing  # does not exist", [], "listed", True),
        ("ending/stall  # needs what was not declared, so it does not fail", [], "listed", True),
        ("wire/bom  # was left out", ["ending/*"], "listed", False),
        ("**/whole  # in part left out", ["ending/*"], "listed", False),
        ("ending/whole  # was played", ["ending/*"], "listed", True),
        ("ending/whole@1  # was left out", [], "event", False),
    ],
)
def test_a_line_is_stale_if_its_cases_were_played_and_none_failed(
    line: str, run_patterns: list[str], segmentation: str, is_stale: bool, tmp_path: Path
) -> None:
    path = write(tmp_path, "ending/no-done  # known", line) if "no-done" not in line else write(tmp_path, line)
    selection = select("client", run=run_patterns, segmentation=segmentation)
    done = run(selection, failing("ending/no-done"), implementation=ABLE, baseline=Baseline.read(path))
    assert done.failures == []
    assert done.stale == ((f"{path}:2: {line}",) if is_stale else ())
    assert exit_status(done) == (1 if is_stale else 0)


# -- the pipeline


def test_results_come_in_the_order_of_the_cases_and_undeclared_needs_are_skipped() -> None:
    selection = select("client", run=["ending/*", "cancel/*"])
    done = run(selection, failing("ending/reset"), implementation=ABLE, jobs=8)
    assert [entry.result.case for entry in done.entries] == list(selection.cases)
    verdicts = {entry.result.case.name: entry.result for entry in done.entries}
    assert verdicts["ending/stall"].verdict is Verdict.SKIPPED
    assert verdicts["ending/stall"].reasons == ("not declared: idle",)
    assert [entry.result.case.name for entry in done.failures] == ["ending/reset"]
    assert exit_status(done) == 1


def test_a_run_of_skips_only_is_no_success(tmp_path: Path) -> None:
    """What was played and is not asked for makes it none either."""
    done = run(select("client", run=["ending/stall"]), failing(), implementation=ABLE)
    with pytest.raises(
        ConformanceError, match="nothing was played: every case needs what is not declared: idle: let the"
    ):
        exit_status(done)
    path = tmp_path / "mine.json"
    path.write_text('{"vectors": ["ending/stall"]}', encoding="utf-8")
    profile = load_profile(str(path))
    done = run(select("client", run=["ending/*"]), failing(), implementation=ABLE, profile=profile)
    with pytest.raises(ConformanceError, match="nothing was played"):
        exit_status(done)


def test_what_the_profile_does_not_ask_for_is_played_and_not_scored(tmp_path: Path) -> None:
    path = tmp_path / "mine.json"
    path.write_text('{"vectors": ["ending/whole", "sse/bom"]}', encoding="utf-8")
    profile = load_profile(str(path))
    done = run(select("client", run=["ending/*"]), failing("ending/reset"), implementation=ABLE, profile=profile)
    assert done.profile == "mine"
    assert {entry.result.case.name for entry in done.entries if entry.required} == {"ending/whole", "ending/whole@1"}
    assert exit_status(done) == 0


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('{"vectors": ["ending/whole", "ending/made-up"]}', "unknown vectors: ending/made-up"),
        ("{", "cannot be read"),
        ("[]", "no list `vectors`"),
        ('{"vectors": [1]}', "no list `vectors`"),
    ],
)
def test_a_profile_that_is_none_is_refused(text: str, message: str, tmp_path: Path) -> None:
    path = tmp_path / "mine.json"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(ConformanceError, match=message):
        load_profile(str(path))


def test_a_profile_that_is_not_there_is_told_from_those_that_are() -> None:
    with pytest.raises(ConformanceError, match=r"neither a file nor a profile of the contract \(draft"):
        load_profile("1.7")


def test_what_a_play_raises_ends_the_run_and_stops_the_others() -> None:
    stopped: list[bool] = []

    def play(case: Case) -> CaseResult:
        raise RuntimeError(case.name)

    with pytest.raises(RuntimeError, match="ending/"):
        run(
            select("client", run=["ending/*"]),
            play,
            implementation=ABLE,
            jobs=2,
            stop=lambda: stopped.append(True),
        )
    assert stopped == [True]
