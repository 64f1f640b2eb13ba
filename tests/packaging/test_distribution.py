"""What reaches a user: the wheel's files, and that the sdist makes the same wheel."""

from __future__ import annotations

import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


def build(source: Path, target: str, into: Path) -> Path:
    """Build a distribution without network or isolation and return its file."""
    argv = [sys.executable, "-m", "hatchling", "build", "--target", target, "--directory", str(into)]
    done = subprocess.run(argv, cwd=source, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return next(into.iterdir())


def names(wheel: Path) -> set[str]:
    with zipfile.ZipFile(wheel) as archive:
        return set(archive.namelist())


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build(ROOT, "wheel", tmp_path_factory.mktemp("wheel"))


def test_the_wheel_carries_both_packages_their_types_and_the_whole_contract(wheel: Path) -> None:
    expected = {"lastword/py.typed", "lastword_shim/py.typed"}
    for folder, inside in (("sdk/lastword", "lastword"), ("server_shim/lastword_shim", "lastword_shim")):
        expected |= {f"{inside}/{path.relative_to(ROOT / folder)}" for path in (ROOT / folder).rglob("*.py")}
    expected |= {f"lastword/report/page/{name}" for name in ("page.html", "style.css")}
    contract = (path for path in (ROOT / "contract").rglob("*") if path.is_file())
    expected |= {f"lastword/contract/{path.relative_to(ROOT / 'contract')}" for path in contract}
    assert expected - names(wheel) == set()


def test_the_wheel_carries_nothing_else(wheel: Path) -> None:
    allowed = ("lastword/", "lastword_shim/", "lastword-")
    assert [name for name in names(wheel) if not name.startswith(allowed) or "__pycache__" in name] == []


def test_the_sdist_makes_the_same_wheel(wheel: Path, tmp_path: Path) -> None:
    sdist = build(ROOT, "sdist", tmp_path / "sdist")
    # not tarfile, whose filter= Python 3.11.2 does not have
    subprocess.run(["tar", "-xf", sdist, "-C", sdist.parent], check=True)
    (unpacked,) = (path for path in sdist.parent.iterdir() if path.is_dir())
    assert names(build(unpacked, "wheel", tmp_path / "again")) == names(wheel)


def test_an_installed_wheel_reads_the_contract_and_loads_nothing_heavy(wheel: Path, tmp_path: Path) -> None:
    """As a user has it: unpacked outside the checkout, without the checkout's fallback; what an extra brings is not needed."""
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(tmp_path)
    code = (
        "import sys, lastword; from importlib.resources import files;"
        "heavy = {'openai', 'httpx', 'typer', 'rich', 'jsonschema', 'h11'} & sys.modules.keys(); assert not heavy, heavy;"
        "assert lastword.__file__.startswith(sys.argv[1]), lastword.__file__;"
        "print((files('lastword') / 'contract' / 'VERSION').read_text().strip())"
    )
    argv = [sys.executable, "-c", code, str(tmp_path)]
    environment = {"PYTHONPATH": str(tmp_path), "PATH": "/usr/bin:/bin"}
    done = subprocess.run(argv, capture_output=True, text=True, check=False, env=environment, cwd=tmp_path)
    assert (done.returncode, done.stdout.strip()) == (0, (ROOT / "contract" / "VERSION").read_text().strip()), (
        done.stderr
    )


def test_an_installed_wheel_exports_the_contract_of_the_checkout(wheel: Path, tmp_path: Path) -> None:
    """The same files, and SOURCE names the package since there is no commit to name."""
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(tmp_path / "site")
    environment = {"PYTHONPATH": str(tmp_path / "site"), "PATH": "/usr/bin:/bin"}
    for command in ("export", "verify"):
        argv = [sys.executable, "-m", "lastword.cli", "contract", command, "copy"]
        done = subprocess.run(argv, capture_output=True, text=True, check=False, env=environment, cwd=tmp_path)
        assert (done.returncode, done.stderr) == (0, ""), done.stdout
    copied = {str(path.relative_to(tmp_path / "copy")): path.read_bytes() for path in (tmp_path / "copy").rglob("*.*")}
    ours = {str(path.relative_to(ROOT / "contract")): path.read_bytes() for path in (ROOT / "contract").rglob("*.*")}
    assert copied == ours
    origin = (tmp_path / "copy" / "SOURCE").read_text().splitlines()[1]
    assert origin.startswith("origin: lastword ")
    assert "commit" not in origin
