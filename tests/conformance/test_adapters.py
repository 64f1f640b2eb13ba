"""The adapters that run in this environment: what they say on their pipes, and how they leave."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

import lastword_sync
import lastword_words
import pytest

from lastword import LastwordError, Outcome
from lastword._contract import load
from lastword.conformance._cases import API_KEY, cases_of
from lastword.conformance._schemas import violations
from lastword.conformance.client._player import call_of, play_client
from lastword.testing import ScriptedServer, answer, stream

ADAPTERS: Final = Path(__file__).parent / "adapters"
COMMANDS: Final = {
    "lastword-sync": [sys.executable, str(ADAPTERS / "lastword_sync.py")],
    "lastword-async": [sys.executable, str(ADAPTERS / "lastword_async.py")],
    "openai-python": [sys.executable, str(ADAPTERS / "openai_python.py"), "--mode", "iterator"],
    "openai-python-stream": [sys.executable, str(ADAPTERS / "openai_python.py"), "--mode", "stream"],
}
NOISY = {
    "py": """
import os, sys
sys.path.insert(0, {folder!r})
from protocol import Unable, serve

def run(case):
    print("noise of a library")
    os.system("echo noise of a child")
    if case is None:
        raise Unable("there is no case")
    return {{"outcome": "completed", "code": None, "text": case["api_key"]}}

serve(run, name="noisy", version="1", capabilities=["cancel"], note="Grüße")
""",
    "mjs": """
import {{ serve, Unable }} from {module!r};

function run(what) {{
  console.log("noise of a library");
  process.stdout.write("and more of it");
  if (!what) throw new Unable("there is no case");
  return {{ outcome: "completed", code: null, text: what.api_key }};
}}

await serve(run, {{ name: "noisy", version: "1", capabilities: ["cancel"], note: "Grüße" }});
""",
}


class Conversation:
    """An adapter's process, and the other end of its pipes."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self.process = process

    def tell(self, message: Any) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write((message if isinstance(message, str) else json.dumps(message)) + "\n")
        self.process.stdin.flush()

    def ask(self, message: Any) -> Any:
        assert self.process.stdout is not None
        assert violations("adapter", message) == []
        self.tell(message)
        said = json.loads(self.process.stdout.readline())
        assert violations("adapter", said) == []
        return said

    def end(self) -> tuple[int, str, str]:
        """Close stdin and wait: the exit status, and what was still said on stdout and stderr."""
        out, err = self.process.communicate(timeout=20)
        return self.process.returncode, out, err


@contextmanager
def talking(command: list[str]) -> Iterator[Conversation]:
    pipe = subprocess.PIPE
    with subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=pipe, text=True, encoding="utf-8") as process:
        try:
            yield Conversation(process)
        finally:
            process.kill()


def case(base_url: str, *, streamed: bool = True) -> dict[str, Any]:
    return {"base_url": base_url, "api_key": API_KEY, "call": call_of({"call": {"stream": streamed}})}


START: Final = {"cmd": "start", "protocol": 1}


@pytest.mark.parametrize("name", COMMANDS)
def test_a_whole_conversation(name: str) -> None:
    """It introduces itself, makes calls of both kinds, and leaves when it is told to."""
    with ScriptedServer([stream("Hel", "lo"), answer("ho")]) as server, talking(COMMANDS[name]) as adapter:
        hello = adapter.ask(START)
        known = {each["capability"] for each in load("registry.json")["capabilities"] if each["of"] == "client"}
        assert (hello["protocol"], hello["name"], hello["language"]) == (1, name, "python")
        assert set(hello["capabilities"]) <= known
        said = [
            adapter.ask({"cmd": "run", "seq": seq, "case": case(server.base_url, streamed=seq == 1)}) for seq in (1, 2)
        ]
        adapter.tell({"cmd": "stop"})
        status, out, _ = adapter.end()
    assert [each["seq"] for each in said] == [1, 2]
    assert [(each["result"]["outcome"], each["result"]["text"]) for each in said] == [
        ("completed", "Hello"),
        ("completed", "ho"),
    ]
    assert (status, out) == (0, "")


@pytest.mark.parametrize("name", COMMANDS)
def test_a_case_that_it_cannot_make(name: str) -> None:
    """It says so, and goes on."""
    with ScriptedServer([answer("ho")]) as server, talking(COMMANDS[name]) as adapter:
        adapter.ask(START)
        adapter.tell({"cmd": "run", "seq": 1, "case": {"base_url": server.base_url}})
        assert adapter.process.stdout is not None
        refusal = json.loads(adapter.process.stdout.readline())
        said = adapter.ask({"cmd": "run", "seq": 2, "case": case(server.base_url, streamed=False)})
    assert refusal == {"seq": 1, "unable": "the adapter failed: KeyError: 'call'"}
    assert said["result"]["text"] == "ho"


@pytest.mark.parametrize("name", COMMANDS)
def test_it_leaves_at_the_end_of_stdin(name: str) -> None:
    with talking(COMMANDS[name]) as adapter:
        adapter.ask(START)
        assert adapter.end()[:2] == (0, "")


@pytest.mark.parametrize("name", COMMANDS)
def test_sigterm_ends_it_in_the_middle_of_a_call(name: str) -> None:
    silent = {"status": 200, "steps": [{"await": "disconnect", "within_ms": 20_000}]}
    with ScriptedServer([silent]) as server, talking(COMMANDS[name]) as adapter:
        adapter.ask(START)
        adapter.tell({"cmd": "run", "seq": 1, "case": case(server.base_url)})
        assert server.wait_for(lambda: len(server.requests) == 1)
        adapter.process.send_signal(signal.SIGTERM)
        assert adapter.end()[:2] == (-signal.SIGTERM, "")


@pytest.mark.parametrize("name", COMMANDS)
def test_a_line_of_no_protocol_ends_it_with_a_word(name: str) -> None:
    refuses(COMMANDS[name], "[1, 2")


def refuses(command: list[str], line: str) -> None:
    with talking(command) as adapter:
        adapter.tell(line)
        status, out, err = adapter.end()
    assert (status, out) == (1, "")
    assert line in err
    assert "no line of the adapter protocol" in err


def noisy(language: str, folder: Path) -> list[str]:
    """The command of an adapter in whose library everything prints to stdout."""
    program = folder / f"noisy.{language}"
    module = (ADAPTERS / "protocol.mjs").as_uri()
    program.write_text(NOISY[language].format(folder=str(ADAPTERS), module=module), encoding="utf-8")
    return ["node" if language == "mjs" else sys.executable, str(program)]


@pytest.mark.parametrize("language", ["py", "mjs"])
def test_what_a_library_prints_is_no_answer(language: str, tmp_path: Path) -> None:
    """Both loops for both languages: stdout is the protocol's, the rest goes to stderr."""
    with talking(noisy(language, tmp_path)) as adapter:
        hello = adapter.ask(START)
        said = adapter.ask({"cmd": "run", "seq": 1, "case": case("http://127.0.0.1:9/v1")})
        adapter.tell({"cmd": "run", "seq": 2, "case": None})
        assert adapter.process.stdout is not None
        assert json.loads(adapter.process.stdout.readline()) == {"seq": 2, "unable": "there is no case"}
        status, out, err = adapter.end()
    assert (hello["name"], hello["note"]) == ("noisy", "Grüße")
    assert said["result"] == {"outcome": "completed", "code": None, "text": API_KEY}
    assert (status, out) == (0, "")
    assert err.count("noise of a library") == 2


@pytest.mark.parametrize("language", ["py", "mjs"])
@pytest.mark.parametrize("line", ["[]", "{}", "7", "null", '{"cmd": 1}', '{"cmd": "run"}'])
def test_json_of_no_protocol_is_refused_by_both_loops(language: str, line: str, tmp_path: Path) -> None:
    refuses(noisy(language, tmp_path), line)


def test_every_error_makes_a_body_of_the_contract(monkeypatch: pytest.MonkeyPatch) -> None:
    """What an error would be passed on as is valid, for every failure of the vectors that wait for nothing."""
    bodies: list[dict[str, Any]] = []
    honest = lastword_words.report

    def watched(word: Any, **members: Any) -> dict[str, Any]:
        error = word.error if isinstance(word, Outcome) else word
        if isinstance(error, LastwordError):
            bodies.append(error.body)
        return honest(word, **members)

    monkeypatch.setattr(lastword_words, "report", watched)
    monkeypatch.setattr(lastword_sync, "report", watched)
    areas = ("answer", "body", "ending", "inband", "wire")
    waits = ('"timeouts"', '"after_ms"', '"delay_ms"', '"await"')
    failing = [
        each
        for each in cases_of("client", "event")
        if each.area in areas and each.vector["expect"]["outcome"] != "completed"
        if not any(word in json.dumps(each.vector) for word in waits)
    ]
    for each in failing:
        play_client(each, lambda message, _: {"result": lastword_sync.run(message)})
    assert len(bodies) >= len(failing) > 200
    assert [violations("error", body) for body in bodies if violations("error", body)] == []
