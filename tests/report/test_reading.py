"""Files as they are found: rotated, compressed, torn, huge, empty, hostile."""

from __future__ import annotations

import contextlib
import gzip
import io
import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.report.conftest import Evenings, gone, record, write

from lastword.report._reading import MOST_BYTES, MOST_NAMED, Reading, families, older, size
from lastword.report._record import NotARecordError, parse


def read(*paths: Path | str, **options: Any) -> tuple[list[str], Reading]:
    """The request ids in order, and how it went."""
    reading = Reading(**options)
    return [found["request_id"] for _, found in reading.records([str(path) for path in paths])], reading


def test_rotated_files_are_read_oldest_first_whatever_their_order(tmp_path: Path) -> None:
    """By number, which counts up, or by date; compressed or not."""
    base = tmp_path / "records.jsonl"
    write(base, record(4))
    write(Path(f"{base}.1"), record(3))
    write(Path(f"{base}.2"), record(2))
    Path(f"{base}.10.gz").write_bytes(gzip.compress(json.dumps(record(1)).encode()))
    given: list[Path | str] = [base, f"{base}.1", f"{base}.10.gz", f"{base}.2"]
    assert families([str(path) for path in given]) == [[f"{base}.10.gz", f"{base}.2", f"{base}.1", str(base)]]
    assert read(*given)[0] == ["req-1", "req-2", "req-3", "req-4"]
    dated: list[Path | str] = [f"{base}-20260102", base, f"{base}-20260101.gz"]
    assert families([str(path) for path in dated]) == [[f"{base}-20260101.gz", f"{base}-20260102", str(base)]]


def test_several_files_are_read_side_by_side_in_the_order_of_their_ends(tmp_path: Path) -> None:
    """So that what belongs together is near."""
    one = write(tmp_path / "a.jsonl", record(1), record(3), record(5))
    other = write(tmp_path / "b.jsonl", record(2), record(4))
    assert read(one, other)[0] == [f"req-{number}" for number in range(1, 6)]


def test_a_file_that_is_named_twice_is_read_once(tmp_path: Path) -> None:
    """By whatever name."""
    path = write(tmp_path / "a.jsonl", record(1))
    link = tmp_path / "b.jsonl"
    link.symlink_to(path)
    assert read(path, link, path)[0] == ["req-1"]


def test_a_record_that_is_there_twice_is_counted_once(tmp_path: Path) -> None:
    """A file and its compressed copy, however long, as patterns find them; beside each other, or one in another folder."""
    taken = [record(number) for number in range(30)]
    plain = write(tmp_path / "a.jsonl", *taken)
    older = write(tmp_path / "a.jsonl.1", record(40), record(40, attempt=2), record(40, side="client"))
    (tmp_path / "b").mkdir()
    copies = [tmp_path / "a.jsonl.gz", tmp_path / "a.jsonl.1.gz", tmp_path / "b" / "c.jsonl"]
    for path, of in zip(copies, (plain, older, plain), strict=True):
        path.write_bytes(gzip.compress(of.read_bytes()))
    ids, reading = read(*tmp_path.glob("a.jsonl*"), copies[2])
    assert (len(ids), reading.read, reading.repeated) == (33, 33, 63)
    assert sorted(set(ids)) == sorted({each["request_id"] for each in [*taken, record(40)]})


def test_records_that_are_there_twice_are_found_in_bounded_memory(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Copies are read side by side, so that a window is enough."""
    monkeypatch.setattr("lastword.report._reading.WINDOW", 10)
    plain = write(tmp_path / "a.jsonl", *(record(number) for number in range(100)))
    packed = tmp_path / "a.jsonl.gz"
    packed.write_bytes(gzip.compress(plain.read_bytes()))
    assert (len(read(packed, plain)[0]), read(packed, plain)[1].repeated) == (100, 100)


def test_who_sends_an_id_again_is_counted_again(tmp_path: Path) -> None:
    """Its record has another time."""
    taken = [record(number, request_id="same") for number in range(3)]
    assert len(read(write(tmp_path / "a.jsonl", *taken))[0]) == 3


def test_lines_that_are_no_records_are_named_and_the_rest_goes_on(tmp_path: Path) -> None:
    """With file, line and reason; blank ones are nothing."""
    path = write(tmp_path / "a.jsonl", record(1), '{"request_id": "to', "", "[1]", record(2), "{}", record(3))
    ids, reading = read(path)
    assert ids == ["req-1", "req-2", "req-3"]
    assert reading.broken == 3
    assert reading.named == [
        f"{path}:2: no JSON: Unterminated string starting at",
        f"{path}:4: no JSON object",
        f"{path}:6: no record: it has no received_at",
    ]


@pytest.mark.parametrize(
    ("changed", "why"),
    [
        ({"received_at": "yesterday"}, 'received_at is "yesterday"'),
        ({"received_at": "2026-01-01T18:00:00"}, "received_at has no time zone"),
        ({"received_at": 5}, "received_at is 5"),
        ({"total_time_ms": -1}, "total_time_ms is -1"),
        ({"total_time_ms": float("nan")}, "total_time_ms is NaN"),
        ({"total_time_ms": 10**400}, "total_time_ms is 1000"),
        ({"queue_time_ms": "3"}, 'queue_time_ms is "3"'),
        ({"completion_tokens": 1.5}, "completion_tokens is 1.5"),
        ({"completion_tokens": True}, "completion_tokens is true"),
        ({"client_disconnected": None}, "client_disconnected is null"),
        ({"model": ["m"]}, 'model is ["m"]'),
        ({"outcome": "splendid"}, 'outcome is "splendid"'),
        ({"side": "gateway"}, 'side is "gateway"'),
        ({"operation": 1}, "operation is 1"),
        ({"error_code": "x"}, 'error_code is "x"'),
        ({"attempt": "1"}, 'attempt is "1"'),
        ({"request_id": {"a": "b" * 99}}, 'request_id is {"a": "bbb'),
        ({"request_id": "a" * 1_000_000}, 'request_id is "aaa'),
        ({"request_id": ""}, 'request_id is ""'),
    ],
)
def test_a_member_that_cannot_be_is_named(changed: dict[str, Any], why: str) -> None:
    """Its value too, shortened."""
    with pytest.raises(NotARecordError) as caught:
        parse(json.dumps({**record(), **changed}).encode())
    assert why in str(caught.value)
    assert len(str(caught.value)) < 120


def test_a_number_without_end_is_told_as_that() -> None:
    """Python reads no more than 4300 digits."""
    with pytest.raises(NotARecordError, match="no JSON: a number that is too long"):
        parse(b'{"attempt": ' + b"9" * 5000 + b"}")


def test_members_of_later_versions_do_not_matter() -> None:
    """An optional one is a minor version (VER-2)."""
    assert parse(json.dumps({**record(), "new": {"deep": [1]}}).encode())[1]["request_id"] == "req-0"


@given(
    st.recursive(
        st.none() | st.booleans() | st.floats() | st.integers() | st.text(),
        lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
        max_leaves=5,
    ),
    st.sampled_from(list(record())),
)
def test_whatever_a_member_is_it_is_taken_or_named(value: Any, name: str) -> None:
    """And never anything else."""
    with contextlib.suppress(NotARecordError):
        parse(json.dumps({**record(), name: value}).encode())


@given(st.binary(max_size=200))
def test_whatever_a_line_is_it_is_taken_or_named(line: bytes) -> None:
    """Bytes of any kind."""
    with pytest.raises(NotARecordError):
        parse(line)


def test_nesting_without_end_is_no_record() -> None:
    """And no crash."""
    with pytest.raises(NotARecordError):
        parse(b"[" * 100_000)


def test_a_line_without_end_is_not_kept_in_memory(tmp_path: Path) -> None:
    """It is passed over, and counted once."""
    path = tmp_path / "a.jsonl"
    path.write_bytes(
        json.dumps(record(1)).encode() + b"\n" + b"x" * (3 * MOST_BYTES) + b"\n" + json.dumps(record(2)).encode()
    )
    ids, reading = read(path)
    assert (ids, reading.broken) == (["req-1", "req-2"], 1)
    assert reading.named == [f"{path}:2: longer than {MOST_BYTES} bytes"]


def test_only_some_broken_lines_are_named(tmp_path: Path) -> None:
    """All are counted."""
    _, reading = read(write(tmp_path / "a.jsonl", *["?"] * 50))
    assert (reading.broken, len(reading.named)) == (50, MOST_NAMED)


def test_a_compressed_file_that_is_cut_gives_what_it_holds(tmp_path: Path) -> None:
    """And is named; others are read all the same."""
    line = json.dumps(record())
    lines = (line.replace("req-0", f"req-{number}") + "\n" for number in range(2000))
    whole = gzip.compress("".join(lines).encode())
    cut, other = tmp_path / "a.jsonl.1.gz", write(tmp_path / "b.jsonl", record(5000))
    cut.write_bytes(whole[: len(whole) // 2])
    ids, reading = read(cut, other)
    assert ids[0] == "req-0"
    assert ids[-1] == "req-5000"
    assert reading.unreadable == [f"{cut}: Compressed file ended before the end-of-stream marker was reached"]


@pytest.mark.parametrize("content", [b"", b"\n\n", b"\x1f\x8b"])
def test_a_file_without_a_record(tmp_path: Path, content: bytes) -> None:
    """Is no error of its own, unless it is no file."""
    path = tmp_path / "a.jsonl"
    path.write_bytes(content)
    ids, reading = read(path, tmp_path)
    assert ids == []
    assert f"{tmp_path}: Is a directory" in reading.unreadable


def test_standard_input_may_be_compressed_too(monkeypatch: pytest.MonkeyPatch) -> None:
    """`cat records.jsonl.1.gz | lastword report -`."""
    for content in (json.dumps(record(7)).encode(), gzip.compress(json.dumps(record(7)).encode())):
        monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BufferedReader(io.BytesIO(content))))
        assert read("-")[0] == ["req-7"]


def test_a_period_leaves_the_rest_out_and_counts_it(tmp_path: Path) -> None:
    """From its first moment, and not its last."""
    path = write(tmp_path / "a.jsonl", *(record(number) for number in range(10)))
    at = [datetime(2026, 1, 1, 18, 0, second, tzinfo=UTC) for second in (3, 6)]
    ids, reading = read(path, since=at[0], until=at[1])
    assert (ids, reading.left_out) == (["req-3", "req-4", "req-5"], 7)


def test_progress_comes_to_all_bytes(tmp_path: Path) -> None:
    """Compressed ones as they are on the disk."""
    lines = [gone(number) for number in range(3000)]
    plain = write(tmp_path / "a.jsonl", *lines)
    packed = tmp_path / "b.jsonl.gz"
    packed.write_bytes(gzip.compress(plain.read_bytes()))
    told: list[int] = []
    read(plain, packed, on_progress=told.append)
    assert sum(told) == size([str(plain), str(packed)])
    assert len(told) > 4
    assert size(["-"]) is None


def test_what_rotation_left_beside_is_noticed(tmp_path: Path) -> None:
    """For a note: it may be forgotten, or left out on purpose."""
    base = write(tmp_path / "records.jsonl", record())
    for suffix in (".1", ".2.gz", "-20260101", ".bak", "l"):
        write(Path(f"{base}{suffix}"), record())
    assert older([str(base)]) == [f"{base}{suffix}" for suffix in ("-20260101", ".1", ".2.gz")]
    assert older([str(base), f"{base}.1", f"{base}.2.gz", f"{base}-20260101"]) == []
    assert older([f"{base}.1", "-"]) == []


def test_records_of_the_shim_are_all_taken(evenings: Evenings) -> None:
    """Each of them."""
    for path in evenings:
        assert read(path)[1].broken == 0


def test_files_that_are_renamed_meanwhile_are_all_read_once(tmp_path: Path) -> None:
    """A server at work goes on setting its file aside."""
    base = tmp_path / "records.jsonl"
    paths = [Path(f"{base}.2"), Path(f"{base}.1"), base]
    for number, path in enumerate(paths):
        write(path, record(2 * number), record(2 * number + 1))
    found = Reading().records([str(path) for path in paths])
    ids = [next(found)[1]["request_id"]]
    for older_name, path in zip([Path(f"{base}.3"), *paths], paths, strict=False):
        path.rename(older_name)
    write(base, record(99))
    ids += [each["request_id"] for _, each in found]
    assert ids == [f"req-{number}" for number in range(6)]


def test_more_files_than_may_be_open_at_once(tmp_path: Path) -> None:
    """They are opened one after the other."""
    for number in range(1, 300):
        write(Path(f"{tmp_path}/a.jsonl.{number}"), record(number))
    assert len(read(*tmp_path.iterdir())[0]) == 299
