"""One unmodified `vllm serve` process: started, watched, asked, and ended with everything that it started."""

from __future__ import annotations

import contextlib
import http.client
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from prometheus_client.parser import text_string_to_metric_families
from tests.conformance.servers import vllm
from tests.ports import free_port

ROOT = Path(__file__).resolve().parents[2]
START_SECONDS = 180.0  # 26 s alone on two cores; several may start at once
# Ends the server's process group and its files when the test run dies without its clean-up (its end of the pipe closes then).
WATCHDOG = """
import os, shutil, signal, sys
sys.stdin.read()
try:
    os.killpg(int(sys.argv[1]), signal.SIGKILL)
finally:
    shutil.rmtree(sys.argv[2], ignore_errors=True)
"""


class VllmServer:
    """A running server. `conftest.py` says how tests get one.

    Attributes:
        root_url: ``http://127.0.0.1:PORT``.
        base_url: the same with ``/v1``, for clients. The model is called ``m``.
        port: the TCP port.
        process: the API server's `subprocess.Popen` (the engine and its worker are its descendants).
        log: file with the whole stdout and stderr.
        record_file: the shim's ``LASTWORD_RECORDS``.
        shim: whether `lastword_shim.Shim` is mounted.
    """

    def __init__(
        self,
        paths: Mapping[str, str],
        folder: Path,
        *,
        shim: bool,
        args: Sequence[str] = (),
        env: Mapping[str, str] | None = None,
        model: str = "tiny",
    ) -> None:
        """Launch the server and return at once; `wait_ready` waits for it.

        Args:
            paths: what `scripts/environment/engine_env.py --json` printed.
            folder: an empty folder for the log and the records.
            shim: mount ``--middleware lastword_shim.Shim``.
            args: further arguments of ``vllm serve``; they come after the defaults, so they win.
            env: further environment variables; a ``PYTHONPATH`` comes after the checkout's packages.
            model: ``tiny`` or ``smollm2``.
        """
        self.shim = shim
        self.port = free_port()
        self.root_url = f"http://127.0.0.1:{self.port}"
        self.base_url = f"{self.root_url}/v1"
        self.log = folder / "vllm.log"
        self.record_file = folder / "records.jsonl"
        # A short path: vLLM puts Unix sockets there, and their paths have 107 bytes at most.
        self._scratch = tempfile.mkdtemp(prefix="lw-")
        command = vllm.serve(paths, model, self.port, shim=shim)
        with open(self.log, "wb") as sink:
            self.process = subprocess.Popen(
                [*command, *args],
                stdin=subprocess.DEVNULL,
                stdout=sink,
                stderr=subprocess.STDOUT,
                env=self._environment(env or {}),
                cwd=self._scratch,
                start_new_session=True,  # its session id finds every descendant later, adopted ones too
            )
        self._watchdog = subprocess.Popen(
            [sys.executable, "-c", WATCHDOG, str(self.process.pid), self._scratch],
            stdin=subprocess.PIPE,
            start_new_session=True,
        )
        self._launched = time.monotonic()

    def _environment(self, extra: Mapping[str, str]) -> dict[str, str]:
        packages = [vllm.PACKAGES] if self.shim else []
        if extra.get("PYTHONPATH"):
            packages.append(extra["PYTHONPATH"])
        inherited = {
            name: value for name, value in os.environ.items() if not name.startswith(("LASTWORD_", "VLLM_", "COV_"))
        }
        shim = {"LASTWORD_RECORDS": str(self.record_file)} if self.shim else {}
        return {
            **inherited,
            **vllm.SETTINGS,
            **shim,
            **extra,
            "TMPDIR": self._scratch,
            "PYTHONPATH": os.pathsep.join(packages),
        }

    def wait_ready(self, say: Callable[[str], None], *, timeout: float = START_SECONDS) -> None:
        """Wait until ``/health`` answers 200, telling `say` every five seconds.

        Raises:
            RuntimeError: the process ended, or `timeout` seconds passed; the message carries the log's end.
        """
        deadline = time.monotonic() + timeout
        next_word = time.monotonic() + 5
        while not self._healthy():
            now = time.monotonic()
            if self.process.poll() is not None:
                raise RuntimeError(f"vllm serve ended with status {self.process.returncode}:\n{self.log_tail()}")
            if now > deadline:
                raise RuntimeError(f"vllm serve did not answer /health within {timeout:.0f} s:\n{self.log_tail()}")
            if now > next_word:
                say(f"vllm on port {self.port}: starting, {now - self._launched:.0f} s")
                next_word = now + 5
            time.sleep(0.2)
        say(f"vllm on port {self.port}: ready {time.monotonic() - self._launched:.0f} s after its launch")

    def _healthy(self) -> bool:
        try:
            return self.get("/health", timeout=5)[0] == 200
        except OSError:
            return False

    def get(self, path: str, *, timeout: float = 10) -> tuple[int, str]:
        """GET a path and return (status, body text). Deliberately not the SDK: it looks on from outside."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=timeout)
        with contextlib.closing(connection):
            connection.request("GET", path)
            answer = connection.getresponse()
            return answer.status, answer.read().decode("utf-8", "replace")

    def metric(self, name: str, **labels: str) -> float:
        """The sum of the samples of that exact name (``vllm:num_requests_running``) whose labels include `labels`."""
        families = text_string_to_metric_families(self.get("/metrics")[1])
        samples = [sample for family in families for sample in family.samples if sample.name == name]
        return sum(sample.value for sample in samples if labels.items() <= sample.labels.items())

    def wait_idle(self, *, timeout: float = 20) -> None:
        """Wait until the engine runs and queues nothing."""
        self.wait_for(
            lambda: self.metric("vllm:num_requests_running") + self.metric("vllm:num_requests_waiting") == 0,
            "an idle engine",
            timeout,
        )

    def wait_for(self, condition: Callable[[], object], what: str, timeout: float = 10) -> None:
        """Poll `condition` every 50 ms until it is true.

        Raises:
            AssertionError: `timeout` seconds passed.
        """
        deadline = time.monotonic() + timeout
        while not condition():
            if time.monotonic() > deadline:
                raise AssertionError(f"no {what} within {timeout} s")
            time.sleep(0.05)

    def records(self, **fields: object) -> list[dict[str, Any]]:
        """The lifecycle records so far whose members equal `fields`; a half-written last line is left out."""
        try:
            text = self.record_file.read_text(encoding="utf-8")
        except FileNotFoundError:
            return []
        found = [json.loads(line) for line in text.splitlines(keepends=True) if line.endswith("\n")]
        return [record for record in found if all(record.get(name) == value for name, value in fields.items())]

    def wait_records(self, count: int = 1, *, timeout: float = 10, **fields: object) -> list[dict[str, Any]]:
        """Wait for at least `count` records that match `fields` and return all that do."""
        self.wait_for(lambda: len(self.records(**fields)) >= count, f"{count} record(s) with {fields}", timeout)
        return self.records(**fields)

    def log_text(self, start: int = 0) -> str:
        """The log from byte `start` on."""
        with open(self.log, "rb") as source:
            source.seek(start)
            return source.read().decode("utf-8", "replace")

    def log_tail(self, lines: int = 60) -> str:
        return "\n".join(self.log_text().splitlines()[-lines:])

    def processes(self) -> dict[int, str]:
        """Every live process of this server, no zombies: pid → title (``VLLM::EngineCore``, ``VLLM::Worker``, …)."""
        return session_processes(self.process.pid)

    def engine_pid(self, title: str = "VLLM::EngineCore") -> int:
        """The pid of the process with that title."""
        return next(pid for pid, text in self.processes().items() if text.startswith(title))

    def signal_engine(self, number: signal.Signals, title: str = "VLLM::EngineCore") -> None:
        """Send a signal to the engine's process: SIGKILL for its death, SIGSTOP for its silence (SIGCONT ends that)."""
        os.kill(self.engine_pid(title), number)

    def step_back(self, nice: int = 5) -> None:
        """Let the engine's busy loops leave callers their turns: on two cores they take them all."""
        group = Path(f"/proc/{self.process.pid}/autogroup")
        if group.exists() and not group.read_text("utf-8").strip().endswith(f"nice {nice}"):
            with contextlib.suppress(BlockingIOError):  # only root may do so twice in a tenth of a second
                group.write_text(str(nice), "utf-8")

    def port_closed(self) -> bool:
        """Whether a new connection is refused."""
        with socket.socket() as probe:
            return probe.connect_ex(("127.0.0.1", self.port)) != 0

    def stop(self, *, gently: bool) -> str | None:
        """End the server and all its processes; safe to call again.

        Args:
            gently: SIGTERM first and twenty seconds to leave; else SIGKILL at once.

        Returns:
            None, or a sentence about what was left behind by a server that had ended, or was given time to.
        """
        survivors: dict[int, str] = {}
        signal_all(self.processes(), signal.SIGCONT)
        if gently and self.process.poll() is None:
            self.process.terminate()
            with contextlib.suppress(subprocess.TimeoutExpired):
                self.process.wait(20)
        if self.process.poll() is not None:
            survivors = self._wait_gone(10)
        workers = {pid: text for pid, text in self.processes().items() if "resource_tracker" not in text}
        signal_all(
            workers, signal.SIGKILL
        )  # the tracker is left to unlink the shared memory of the others, and ends by itself
        self._wait_gone(5)
        signal_all(self.processes(), signal.SIGKILL)
        self.process.wait(10)
        self._watchdog.kill()
        self._watchdog.communicate()
        shutil.rmtree(self._scratch, ignore_errors=True)
        left = self._wait_gone(5) or survivors
        return f"vllm serve (pid {self.process.pid}) left processes behind: {left}" if left else None

    def _wait_gone(self, seconds: float) -> dict[int, str]:
        deadline = time.monotonic() + seconds
        while (left := self.processes()) and time.monotonic() < deadline:
            self.process.poll()
            time.sleep(0.05)
        return left


def session_processes(session: int) -> dict[int, str]:
    """Live processes of one session: pid → command line."""
    found = {}
    for entry in Path("/proc").iterdir():
        if not entry.name.isdigit():
            continue
        try:
            # The command name, in parentheses, may hold spaces; after it: state, ppid, pgrp, session.
            fields = (entry / "stat").read_text(encoding="utf-8").rpartition(")")[2].split()
            title = (entry / "cmdline").read_bytes().replace(b"\0", b" ").decode("utf-8", "replace").strip()
        except OSError:  # it ended while we looked
            continue
        if int(fields[3]) == session and fields[0] not in "ZX":
            found[int(entry.name)] = title
    return found


def signal_all(processes: Mapping[int, str], number: signal.Signals) -> None:
    for pid in processes:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, number)
