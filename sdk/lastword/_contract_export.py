"""The contract as a directory of its own: written out whole or not at all, and recognised again later.

``SOURCE`` in it says which contract it is, where it came from, and the SHA-256 of its tree: of the lines that ``sha256sum``
prints for all other files, sorted by name. A shell can check it, and so can any language.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import secrets
import shutil
import subprocess
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from importlib.resources.abc import Traversable
from pathlib import Path
from typing import Final

from lastword import __version__
from lastword._codes import CONTRACT_VERSION
from lastword._command_error import CommandError
from lastword._contract import contract_root, load

SOURCE: Final = "SOURCE"
_ALWAYS: Final = ("README.md", "package.json", "LICENSE")  # npm packs these without being told


@dataclass(frozen=True, slots=True)
class Copy:
    """A directory that holds a contract, or what is left of one.

    ``source``   the lines of its ``SOURCE``; empty if it has none
    ``version``  what its ``VERSION`` says, else its ``SOURCE``; "" if neither does
    ``intact``   whether it is as it was when ``SOURCE`` was written; None without a ``SOURCE`` that says
    ``changed``, ``missing``, ``added``  its files against the contract of this package, where both are of one version
    ``endings``  whether nothing but the ends of lines differs in what changed
    """

    version: str
    source: Mapping[str, str] = field(default_factory=dict)
    intact: bool | None = None
    changed: tuple[str, ...] = ()
    missing: tuple[str, ...] = ()
    added: tuple[str, ...] = ()
    endings: bool = False

    @property
    def current(self) -> bool:
        """Whether it is, file for file, the contract of this package."""
        return self.version == CONTRACT_VERSION and not (self.changed or self.missing or self.added)


def export(target: Path, *, force: bool = False) -> int:
    """Write the contract to ``target`` and give the number of its files; ``CommandError`` if that cannot be.

    What was there is replaced at the last moment, in one step: whoever looks sees the old state or the new one.
    """
    try:
        target = Path(os.path.realpath(target))  # a link stays, and what it leads to is replaced
    except FileNotFoundError as error:
        raise CommandError(f"{target}: the working directory is gone; give a whole path from another one") from error
    _check_target(target, force=force)
    files = packaged_files()
    source = f"contract: {CONTRACT_VERSION}\norigin: {_origin()}\nsha256: {tree_hash(files)}\n"
    beside = target.with_name(f".{target.name}.{secrets.token_hex(4)}")
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        try:
            _write(beside, {**files, SOURCE: source.encode()})
            _swap(beside, target)
        finally:
            shutil.rmtree(beside, ignore_errors=True)
    except OSError as error:
        raise CommandError(f"{target}: the contract cannot be written there: {error.strerror}") from error
    return len(files) + 1


def inspect(directory: Path) -> Copy:
    """Hold a directory against its own ``SOURCE`` and against the contract of this package."""
    if not directory.is_dir():
        raise CommandError(f"{directory}: no such directory")
    try:
        found = {path.relative_to(directory).as_posix(): _content(path) for path in _walk(directory)}
    except OSError as error:
        raise CommandError(f"{directory}: cannot be read: {error.strerror}") from error
    source = _parse(found.pop(SOURCE, b""))
    if not source and not {"VERSION", "registry.json"} & found.keys():
        raise CommandError(f"{directory}: this is no contract: it has neither {SOURCE} nor VERSION")
    version = found.get("VERSION", b"").decode("utf-8", "replace").strip() or source.get("contract", "")
    intact = source["sha256"] == tree_hash(found) if "sha256" in source else None
    if version != CONTRACT_VERSION:
        return Copy(version, source, intact)
    ours = packaged_files()
    changed = sorted(name for name in ours.keys() & found.keys() if ours[name] != found[name])
    return Copy(
        version,
        source,
        intact,
        changed=tuple(changed),
        missing=tuple(sorted(ours.keys() - found.keys())),
        added=tuple(sorted(found.keys() - ours.keys())),
        endings=bool(changed) and all(_lf(ours[name]) == _lf(found[name]) for name in changed),
    )


def packaged_files() -> dict[str, bytes]:
    """The contract of this package: what the npm package has, by path."""
    root = contract_root()
    listed = [*load("package.json")["files"], *_ALWAYS]
    return dict(sorted(pair for name in listed for pair in _read(root / name.rstrip("/"), name.rstrip("/"))))


def tree_hash(files: Mapping[str, bytes]) -> str:
    """SHA-256 of ``sha256sum``'s lines for these files, sorted by the bytes of their names."""
    lines = (f"{hashlib.sha256(files[name]).hexdigest()}  {name}\n" for name in sorted(files, key=os.fsencode))
    return hashlib.sha256(os.fsencode("".join(lines))).hexdigest()


def _read(entry: Traversable, name: str) -> Iterator[tuple[str, bytes]]:
    if entry.is_file():
        yield name, entry.read_bytes()
        return
    for inner in entry.iterdir():
        if inner.is_dir() or inner.name.endswith(".json"):  # what an editor or a file manager leaves is no part of it
            yield from _read(inner, f"{name}/{inner.name}")


def _walk(directory: Path) -> Iterator[Path]:
    for folder, folders, names in os.walk(directory, onerror=_raise):
        links = [
            name for name in folders if Path(folder, name).is_symlink()
        ]  # not walked into, and no part of a contract
        yield from (Path(folder, name) for name in (*names, *links))


def _content(path: Path) -> bytes:
    """Give a file's bytes; of what is no file (a pipe, a device, a link to a directory) none, for it may have no end."""
    return path.read_bytes() if path.is_file() else b""


def _raise(error: OSError) -> None:
    raise error


def _lf(content: bytes) -> bytes:
    return content.replace(b"\r\n", b"\n")


def _parse(source: bytes) -> dict[str, str]:
    lines = source.decode("utf-8", "replace").splitlines()
    return {name.strip(): value.strip() for name, mark, value in (line.partition(":") for line in lines) if mark}


def _check_target(target: Path, *, force: bool) -> None:
    root = contract_root()
    if isinstance(root, Path) and (target == root.resolve() or root.resolve() in target.parents):
        raise CommandError(f"{target}: that is where the contract itself lives; give another directory")
    here = Path(os.path.realpath("."))
    if here == target or target in here.parents:
        raise CommandError(f"{target}: the working directory lies in it; give a new one, such as vendor/contract")
    if target.exists() and not target.is_dir():
        raise CommandError(f"{target}: that is no directory")
    try:
        inside = {each.name for each in target.iterdir()} if target.exists() else set()
    except OSError as error:
        raise CommandError(f"{target}: cannot be read: {error.strerror}") from error
    if not inside:
        return
    if not {SOURCE, "VERSION", "registry.json"} <= inside:
        raise CommandError(f"{target}: it is not empty and holds no exported contract; give another directory")
    if not force:
        raise CommandError(f"{target}: there is a contract already; --force replaces it and all that is in it")


def _write(directory: Path, files: Mapping[str, bytes]) -> None:
    for name, content in files.items():
        path = directory / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)


def _swap(new: Path, target: Path) -> None:
    """Put ``new`` in the place of ``target``; if that fails, what was there is there again."""
    old = target.with_name(f"{new.name}.old")
    try:
        if target.exists():
            target.rename(old)
        new.rename(target)
    except BaseException:  # an interruption between the two must not leave nothing
        if old.exists() and not target.exists():
            old.rename(target)
        raise
    shutil.rmtree(old, ignore_errors=True)


def _origin() -> str:
    """Where the files come from: a commit if this is a checkout, else the package."""
    root = contract_root()
    package = f"lastword {__version__}"
    if not isinstance(root, Path) or not (root.parent / ".git").exists():
        return package
    with contextlib.suppress(OSError, subprocess.SubprocessError):  # no git, or not one that reads this
        commit = _git(root, "rev-parse", "HEAD")
        return f"{package}, commit {commit}" + (", with changes" if _git(root, "status", "--porcelain", ".") else "")
    return f"{package}, a checkout"


def _git(directory: Path, *arguments: str) -> str:
    command = ["git", "-C", str(directory), *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=True, timeout=20).stdout.strip()
