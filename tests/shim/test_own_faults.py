"""What fails in the shim itself, or in the process that it is in: the record is written all the same."""

from __future__ import annotations

import errno
import subprocess
import sys

import pytest
from tests.shim.apps import streaming
from tests.shim.wire import serving

# As in a server process: whatever the tests themselves have loaded is not there.
_WITHOUT_DESCRIPTORS = """
import os, resource, sys
from lastword_shim.protocol.private import Secrets
from lastword_shim.protocol.redact import loggable, loggable_traceback

secrets = Secrets()
secrets.read('{"messages": "a prompt of some words"}'.encode("utf-16"))
resource.setrlimit(resource.RLIMIT_NOFILE, (0, 0))
print(loggable("caf\\u00e9", secrets))
try:
    raise OSError("too many \\u00e9")
except OSError as error:
    print(loggable_traceback(error, secrets).splitlines()[-1])
"""


@pytest.mark.anyio
async def test_what_cannot_even_be_logged_is_recorded(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object) -> str:
        raise OSError(errno.EMFILE, "Too many open files")

    monkeypatch.setattr("lastword_shim.protocol.settling.loggable_traceback", fail)
    async with serving(streaming(RuntimeError("no"))) as server:
        answer = await server.ask({})
        record = await server.one_record()
    assert answer.status == 500
    assert (record["outcome"], record["error_code"]) == ("failed", "internal_server_error")


def test_the_log_needs_no_descriptor() -> None:
    said = subprocess.run([sys.executable, "-c", _WITHOUT_DESCRIPTORS], capture_output=True, text=True, check=False)
    assert said.stdout == "caf\\xe9\nOSError: too many \\xe9\n", said.stderr
