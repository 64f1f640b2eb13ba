"""``lastword contract``: what it writes, what it refuses, and what is there after it was stopped half-way."""

from __future__ import annotations

import errno
import hashlib
import json
import os
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from lastword import _contract_export as _export
from lastword._codes import CONTRACT_VERSION
from lastword.cli._app import app

ROOT = Path(__file__).resolve().parents[2]


def lastword(*arguments: object) -> Result:
    return CliRunner().invoke(app, ["contract", *map(str, arguments)])


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    """A contract that was exported."""
    target = tmp_path / "vendor/contract"
    assert lastword("export", target).exit_code == 0
    return target


def files(directory: Path) -> dict[str, bytes]:
    return {str(path.relative_to(directory)): path.read_bytes() for path in directory.rglob("*") if path.is_file()}


def test_export_writes_every_file_of_the_contract(tmp_path: Path) -> None:
    target = tmp_path / "new/contract"
    done = lastword("export", target)
    written, ours = files(target), files(ROOT / "contract")
    source = written.pop("SOURCE").decode()
    assert (done.exit_code, written) == (0, ours)
    assert done.stdout.splitlines()[0] == f"Wrote contract {CONTRACT_VERSION} to {target}: {len(ours) + 1} files."
    assert f"lastword contract verify {target}" in done.stdout
    assert source.splitlines()[0] == f"contract: {CONTRACT_VERSION}"
    assert "commit " in source.splitlines()[1]
    assert [path.name for path in target.parent.iterdir()] == ["contract"]


def test_a_shell_makes_the_same_source(tmp_path: Path) -> None:
    """With the very lines of the contract's README, from a clone of this repository."""
    readme = (ROOT / "contract/README.md").read_text(encoding="utf-8")
    (block,) = [
        text for text in re.findall(r"^```sh\n(.*?)^```", readme, re.MULTILINE | re.DOTALL) if "sha256sum" in text
    ]
    script = block.replace('--branch "$TAG" ', "")
    environment = {"PATH": os.environ["PATH"], "HOME": str(tmp_path), "REPOSITORY": ROOT.as_uri()}
    subprocess.run(["sh", "-ec", script], cwd=tmp_path, env=environment, capture_output=True, text=True, check=True)
    copied = files(tmp_path / "vendor/lastword-contract")
    origin, digest = copied.pop("SOURCE").decode().splitlines()
    assert re.fullmatch("origin: commit [0-9a-f]{40}", origin)
    assert digest == f"sha256: {_export.tree_hash(copied)}"
    assert _export.inspect(tmp_path / "vendor/lastword-contract").intact


def test_verify_knows_it_again(directory: Path) -> None:
    done = lastword("verify", directory)
    assert (done.exit_code, done.stdout) == (0, f"{directory} is contract {CONTRACT_VERSION}, unchanged.\n")


def test_verify_names_what_was_changed(directory: Path) -> None:
    (directory / "SPEC.md").write_text("Do as you like.")
    (directory / "schemas/error.json").unlink()
    (directory / "vectors/client/ours.mine.json").write_text("{}")
    done = lastword("verify", directory)
    assert done.exit_code == 1
    assert done.stdout.splitlines()[1:4] == [
        "  changed: SPEC.md", "  missing: schemas/error.json", "  added: vectors/client/ours.mine.json"
    ]  # fmt: skip
    assert f"lastword contract export --force {directory}" in done.stdout


def test_verify_does_not_flood(directory: Path) -> None:
    shutil.rmtree(directory / "vectors/client")
    done = lastword("verify", directory)
    assert (done.exit_code, len(done.stdout.splitlines())) == (1, 13)
    assert "more" in done.stdout.splitlines()[-2]


def test_verify_sees_when_only_line_ends_differ(directory: Path) -> None:
    path = directory / "SPEC.md"
    path.write_bytes(path.read_bytes().replace(b"\n", b"\r\n"))
    done = lastword("verify", directory)
    assert done.exit_code == 1
    assert ".gitattributes" in done.stdout


@pytest.mark.parametrize(
    ("spoil", "said"), [(False, "unchanged since it was exported"), (True, "changed since it was exported")]
)
def test_verify_tells_another_version(directory: Path, spoil: bool, said: str) -> None:
    (directory / "VERSION").write_text("1.7.0\n")
    (directory / "SOURCE").unlink()
    source = f"contract: 1.7.0\norigin: lastword 2.0\nsha256: {_export.tree_hash(files(directory))}\n"
    (directory / "SOURCE").write_text(source)
    if spoil:
        (directory / "SPEC.md").write_text("Do as you like.")
    done = lastword("verify", directory)
    assert done.exit_code == 1
    assert f"is contract 1.7.0 ({said}); this lastword has {CONTRACT_VERSION}." in done.stdout


def test_verify_tells_a_contract_that_is_older_than_its_name(directory: Path) -> None:
    """A pre-release may change under one version: the copy is as it was exported, and all the same not this one."""
    (directory / "SPEC.md").write_text("An earlier draft.")
    (directory / "SOURCE").unlink()
    source = f"contract: {CONTRACT_VERSION}\norigin: lastword 0.0\nsha256: {_export.tree_hash(files(directory))}\n"
    (directory / "SOURCE").write_text(source)
    done = lastword("verify", directory)
    assert done.exit_code == 1
    assert "is as it was exported (lastword 0.0), and not the contract" in done.stdout


def test_verify_takes_a_plain_copy(tmp_path: Path) -> None:
    """Without SOURCE, or with one that is a bare commit, the files alone tell."""
    shutil.copytree(ROOT / "contract", tmp_path / "copy")
    (tmp_path / "copy/SOURCE").write_text("166cea7\n")
    assert lastword("verify", tmp_path / "copy").exit_code == 0


@pytest.mark.parametrize("there", [True, False])
def test_verify_refuses_what_is_no_contract(tmp_path: Path, there: bool) -> None:
    done = lastword("verify", tmp_path if there else tmp_path / "nothing")
    assert (done.exit_code, done.stdout) == (2, "")
    assert str(tmp_path) in done.stderr


def test_export_does_not_replace_unasked(directory: Path) -> None:
    (directory / "SPEC.md").write_text("Mine.")
    before = files(directory)
    done = lastword("export", directory)
    assert (done.exit_code, files(directory)) == (2, before)
    assert "--force" in done.stderr
    assert lastword("export", "--force", directory).exit_code == 0
    assert lastword("verify", directory).exit_code == 0


def test_export_never_replaces_what_is_no_contract(tmp_path: Path) -> None:
    (tmp_path / "thesis.tex").write_text("years of work")
    for force in ([], ["--force"]):
        done = lastword("export", *force, tmp_path)
        assert done.exit_code == 2
        assert "holds no exported contract" in done.stderr
    assert files(tmp_path) == {"thesis.tex": b"years of work"}


def test_export_takes_an_empty_directory(tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    assert lastword("export", tmp_path / "empty").exit_code == 0


def test_export_refuses_odd_places(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The contract itself, a directory that one stands in, a file, a place below a file."""
    (tmp_path / "file").write_text("")
    (tmp_path / "a/b").mkdir(parents=True)
    monkeypatch.chdir(tmp_path / "a/b")
    places = (ROOT / "contract", ROOT / "contract/new", ".", "..", tmp_path / "file", tmp_path / "file/below")
    for place in places:
        done = lastword("export", "--force", place)
        assert done.exit_code == 2, place
        assert "Traceback" not in done.output
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a", "file"]


def test_export_goes_through_a_link(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to("real")
    assert lastword("export", tmp_path / "link").exit_code == 0
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "real/SOURCE").is_file()


@pytest.mark.parametrize(
    ("stopped_by", "status", "said"),
    [
        (OSError(errno.ENOSPC, "No space left on device"), 2, "No space left on device"),
        (KeyboardInterrupt(), 130, "interrupted"),
    ],
)
@pytest.mark.parametrize("where", ["write_bytes", "rename"])
@pytest.mark.parametrize("replaces", [True, False])
def test_there_is_never_half_a_contract(
    directory: Path, monkeypatch: pytest.MonkeyPatch, stopped_by: BaseException, status: int, said: str,
    where: str, replaces: bool,
) -> None:  # fmt: skip
    """A full disk and Ctrl-C, while the files are written and while directories change places: all or nothing."""
    if not replaces:
        shutil.rmtree(directory)
    before = files(directory)
    working, calls = getattr(Path, where), []

    def stops(self: Path, *arguments: Any) -> Any:
        calls.append(self)
        if len(calls) == (100 if where == "write_bytes" else 1 + replaces):
            raise stopped_by
        return working(self, *arguments)

    monkeypatch.setattr(Path, where, stops)
    done = lastword("export", "--force", directory)
    assert done.exit_code == status
    assert said in done.stderr
    assert files(directory) == before
    assert [path.name for path in directory.parent.iterdir()] == (["contract"] if replaces else [])


def test_the_hash_is_that_of_sha256sums_lines() -> None:
    one = hashlib.sha256(b"x").hexdigest()
    lines = f"{one}  B/c\n{one}  a\n{one}  é\n"
    assert _export.tree_hash({"é": b"x", "a": b"x", "B/c": b"x"}) == hashlib.sha256(lines.encode()).hexdigest()


def test_stray_files_are_not_exported(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """What an editor or a file manager left in a checkout is no part of the contract."""
    root = tmp_path / "contract"
    shutil.copytree(ROOT / "contract", root)
    for name in ("notes.txt", "vectors/.DS_Store", "vectors/client/x.json~", "node_modules/y.json"):
        (root / name).parent.mkdir(exist_ok=True)
        (root / name).write_text("{}")
    monkeypatch.setattr(_export, "contract_root", lambda: root)
    assert _export.packaged_files().keys() == files(ROOT / "contract").keys()
    assert json.loads(_export.packaged_files()["package.json"])["name"] == "@lastword/contract"


def test_what_lies_about_in_a_copy_is_told_and_neither_read_nor_obeyed(directory: Path) -> None:
    os.mkfifo(directory / "pipe")  # has no end, as long as nobody writes
    (directory / "endless").symlink_to("/dev/zero")
    (directory / "elsewhere").symlink_to(directory.parent)
    for name in (b"latin-\xe9", b"\x1b[2Jescape"):
        Path(os.fsdecode(os.path.join(os.fsencode(directory), name))).touch()
    said = lastword("verify", directory)
    assert said.exit_code == 1
    names = [r"\x1b[2Jescape", "elsewhere", "endless", r"latin-\udce9", "pipe"]
    assert said.stdout.splitlines()[1:-1] == [f"  added: {name}" for name in names]
    (directory / "VERSION").write_text("9\x1b[31m\nAll is well." + "x" * 5000)
    other = lastword("verify", directory).stdout
    assert r"is contract 9\x1b[31m All is well.xxx" in other
    assert len(other) < 1000


def test_a_working_directory_that_is_gone_is_one_sentence(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    here = tmp_path / "here"
    here.mkdir()
    monkeypatch.chdir(here)
    here.rmdir()
    said = lastword("export", "vendor")
    assert said.exit_code == 2
    assert said.stderr == "lastword: vendor: the working directory is gone; give a whole path from another one\n"
