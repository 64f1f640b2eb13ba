"""From the options of a run against a server to a stage that is ready: the scripted engine, the process, what was found."""

from __future__ import annotations

import contextlib
import json
import re
import socket
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain, pairwise
from pathlib import PurePath
from typing import Any, Final

from lastword.conformance._cases import API_KEY
from lastword.conformance._results import ConformanceError, Implementation
from lastword.conformance.server._engine import Engine
from lastword.conformance.server._player import ServerPlayer, capabilities
from lastword.conformance.server._probe import look
from lastword.conformance.server._process import START_LIMIT, ServerProcess
from lastword.conformance.server._request import Target, read_url
from lastword.conformance.server._scene import ANSWER_LIMIT, Stage

_SCRIPTS: Final = frozenset({".py", ".js", ".mjs", ".cjs", ".ts", ".rb", ".sh"})
_APPLICATION: Final = re.compile(r"([A-Za-z_][\w.]*):[A-Za-z_]\w*")  # as uvicorn and its like take it: gateway:app
_INTERPRETER: Final = re.compile(r"(python|pypy|node|deno|bun|ruby|bash|sh|env|uv|npx)[\d.]*")


@dataclass(frozen=True, slots=True, kw_only=True)
class Server:
    """A server as the command line describes it; the options' own words say what each member means."""

    url: str | None = None
    model: str | None = None
    api_key: str = API_KEY
    context: int | None = None
    extra_body: str | None = None
    capabilities: str | None = None
    upstream_port: int | None = None
    command: Sequence[str] = field(default=())
    start_limit: float = START_LIMIT
    answer_limit: float = ANSWER_LIMIT
    name: str | None = None
    version: str | None = None
    note: str = ""


@contextlib.contextmanager
def on_stage(server: Server) -> Iterator[tuple[ServerPlayer, Implementation]]:
    """Start what is to be started and look at the server; all of it ends with the block.

    Raises ``ConformanceError`` where an option makes no sense, or the server does not start or answer.
    """
    target, upstream_port = _target(server), server.upstream_port
    if upstream_port is None and any("{upstream" in part for part in server.command):
        upstream_port = 0
    with contextlib.ExitStack() as stack:
        engine = stack.enter_context(Engine(upstream_port)) if upstream_port is not None else None
        process = None
        if server.command:
            upstream = engine.address if engine else None
            process = ServerProcess(server.command, target, upstream=upstream, patience=server.start_limit)
            stack.callback(process.close)
            process.start()
        found = look(target, model=server.model)
        stage = Stage(found.target, engine, None if engine else found.gauge, process, server.answer_limit)
        has = capabilities(server.capabilities, stage)
        name = server.name or _name_of(server.command) or found.name
        version = found.version if server.version is None else server.version
        yield ServerPlayer(stage), Implementation(name, version, "HTTP", has, server.note)


def _name_of(command: Sequence[str]) -> str | None:
    """What a command starts: an application; of an interpreter its script or module, if it tells; else itself."""
    if not command:
        return None
    paths = [PurePath(part) for part in command]
    applications = (match[1] for part in command if (match := _APPLICATION.fullmatch(part)))
    scripts = (path.stem for path in paths if path.suffix in _SCRIPTS)
    modules = (module for flag, module in pairwise(command) if flag == "-m")
    own = (paths[0].stem if paths[0].suffix in _SCRIPTS else paths[0].name,)
    runs = _INTERPRETER.fullmatch(paths[0].name)
    return next(chain(applications, *((scripts, modules) if runs else (own,))), None)


def _target(server: Server) -> Target:
    url = server.url
    if url is None:
        if not server.command:
            raise ConformanceError("--url: where does the server answer? Or give the command that starts it after --")
        if not any("{port}" in part or "{url}" in part for part in server.command):
            raise ConformanceError(
                "--url: where does the server answer? Or let the command take {port}, for a free one"
            )
        with socket.create_server(("127.0.0.1", 0)) as free:
            url = f"http://127.0.0.1:{free.getsockname()[1]}"
    host, port, tls, prefix = read_url(url)
    if not server.api_key.isascii() or not server.api_key.isprintable():
        raise ConformanceError("--api-key: it has a character that no header may have, such as the end of a line")
    return Target(
        host,
        port,
        tls,
        prefix,
        model=server.model or "",
        api_key=server.api_key,
        context=server.context,
        extra=_extra(server.extra_body),
    )


def _extra(text: str | None) -> Mapping[str, Any]:
    try:
        extra = json.loads(text or "{}")
    except ValueError as error:
        raise ConformanceError(f"--extra-body: {error}") from error
    if not isinstance(extra, dict):
        raise ConformanceError("--extra-body: a JSON object is needed")
    return extra
