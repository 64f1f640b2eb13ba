"""What may leave the server of an engine's own words.

Errors that are the server's fault say the registry's sentence and nothing of the engine's: an allow-list has no
holes.  Errors that the caller can fix keep the engine's words, which say what to fix, with everything scrubbed that
tells about the machine.  The full text goes to the log under the request id (see ``answer``).
"""

from __future__ import annotations

import ast
import codecs
import re
import traceback
from typing import Any, Final

from lastword_shim.protocol.private import Secrets

MAX_MESSAGE: Final = 1000
"""Longest message that leaves, in characters."""
MAX_LOGGED: Final = 8 * MAX_MESSAGE
"""Longest message in the log, likewise."""
NOTHING: Final = Secrets()
"""For what belongs to no request."""

_HINTS_OF_INTERNALS: Final = re.compile(
    r"Traceback \(most recent call last\)|CUDA|cuBLAS|cuDNN|NCCL|HIP error|torch\.|\bGPU \d+|Triton|"
    r"^\s*File \"|\bline \d+, in ",
    re.MULTILINE,
)
_GROUPS: Final = r"[0-9a-fA-F]{1,4}(?::[0-9a-fA-F]{1,4})"
_IPV6: Final = (
    rf"(?<![\w:])(?:{_GROUPS}{{5,7}}|(?:{_GROUPS}{{0,5}})?::{_GROUPS}{{0,5}}|{_GROUPS}{{0,5}}::)(?:%\w+)?(?![\w:])"
)
_NAMES: Final = r"(?i:(?:api|access)[-_ ]?key|(?:access|auth|secret)[-_ ]?token|secret|password)"
_KEYS: Final = tuple(
    re.compile(pattern)
    for pattern in (
        r"\b(?:sk|pk|rk)-[\w-]{16,}",
        r"\bhf_[A-Za-z0-9]{16,}",
        r"(?i:(?<=\bbearer ))[\w.~+/-]{8,}=*",
        # A name for a secret, then a value with a letter in it: a token's number is none.
        rf"(?P<kept>{_NAMES}[\"']?\s?[=:]\s?[\"']?)(?=[\w.~+/-]*[A-Za-z])[\w.~+/-]{{8,}}",
    )
)
_SCRUBS: Final = tuple(
    (re.compile(pattern), put)
    for pattern, put in (
        (r"<(?:class|function|module|bound method|built-in)\s[^<>]*>", "<object>"),
        (r"<[^<>]{1,300}? at 0x[0-9a-fA-F]+>", "<object>"),
        (r"\b0x[0-9a-fA-F]{4,}\b", "<address>"),
        (r"\b(?:tcp|ipc|inproc)://[^\s'\",)]+", "<address>"),
        (r"(?<![\d.])(?:\d{1,3}\.){3}\d{1,3}(?::\d{1,5})?(?![\d.])", "<address>"),
        (r"\[[0-9a-fA-F.]*:[0-9a-fA-F.]*:[0-9a-fA-F:.]*(?:%\w+)?\](?::\d{1,5})", "<address>"),  # [::1]:8000
        (_IPV6, "<address>"),
        (r"\bfile:/+[^\s'\",)]*", "<path>"),
        (r"\b[A-Za-z]:(?:\\|/(?!/))(?:[^\s\\/'\"]+[\\/])*[^\s\\/'\",)]*", "<path>"),
        (r"(?<![\w/.:])(?:\.\.?/)+(?:[\w.@+~-]+/)*[\w.@+~-]+", "<path>"),
        (r"(?<![\w:/.<])//[\w.-]+/[^\s'\",)]+", "<path>"),
        # Absolute paths of two parts and more; a URL's path and the API's own routes are no secret.
        (r"(?<![\w:/.<])/(?!v\d/|v\d\b)(?:[\w.@+~-]+/)+[\w.@+~-]*", "<path>"),
        (r"(?<![\w:/.<])/(?:home|root|tmp|etc|usr|opt|var|srv|mnt|proc|dev|app|workspace)\b", "<path>"),
        (r"\b[\w-]+(?:/[\w-]+)+\.(?:py|so|cu|cpp|json|safetensors|gguf|bin)\b", "<path>"),
        (r"\b(?:[a-z_][\w]*\.){2,}[A-Z]\w*", "<object>"),  # vllm.v1.engine.Thing
    )
)
# Of a traceback what is code, and no value.
_FRAME: Final = re.compile(r'  File "[^"\n]*", line \d+, in |Traceback \(most recent call last\):\n\Z')
# Python looks for a codec's file when it is first used: too late where no descriptor is left.
_escaped: Final = codecs.getencoder("unicode_escape")
for _of_json in ("utf-8-sig", "utf-16", "utf-16-le", "utf-16-be", "utf-32", "utf-32-le", "utf-32-be"):
    codecs.lookup(_of_json)
_WORD: Final = re.compile(r"[\w.-]{1,64}")
_INPUT: Final = re.compile(r"(['\"]input['\"]: ).*", re.DOTALL)
_INPUT_VALUE: Final = re.compile(r"(\binput_value=)[^\n]*?(, input_type=|\n|$)")  # pydantic's own way to print it
_PART: Final = re.compile(r"'(loc|msg)': (?:'((?:[^'\\]|\\.)*)'|\"((?:[^\"\\]|\\.)*)\"|\(([^)]*)\))")
_VALIDATION: Final = re.compile(r"^\d+ validation errors?( for [\w\[\]., ]+)?:?\n")


def as_word(text: str) -> str:
    """An engine's own word if it is one; what is not might be anything."""
    return text if _WORD.fullmatch(text) else "unreadable"


def scrub(message: str) -> str | None:
    """The message without paths, addresses, tracebacks, device texts and class names; None where nothing safe is left."""
    message = message[: 4 * MAX_MESSAGE]  # patterns take their time on megabytes
    if _VALIDATION.match(message):
        return _validation(message)
    if _HINTS_OF_INTERNALS.search(message):
        return None
    message = without_keys(message)
    for pattern, put in _SCRUBS:
        message = pattern.sub(put, message)
    message = _INPUT_VALUE.sub(r"\1…\2", message)
    message = "".join(char if char.isprintable() else " " for char in message).strip()
    return message[:MAX_MESSAGE] or None


def loggable(message: str, secrets: Secrets = NOTHING) -> str:
    """The message as one log line, without keys, and without what it repeats from the body."""
    message = secrets.masked(message[:MAX_LOGGED])
    if _VALIDATION.match(message):
        message = "; ".join(_INPUT.sub(r"\1…}", line) for line in message.splitlines())
    return _in_one_line(_INPUT_VALUE.sub(r"\1…\2", without_keys(message)))


def loggable_traceback(error: BaseException, secrets: Secrets = NOTHING) -> str:
    """Where ``error`` came from, in lines for the log, without keys and without values of the body."""
    parts = traceback.format_exception(error)
    text = "".join(part if _FRAME.match(part) else secrets.masked(_shortened(part)) for part in parts)
    text = _INPUT_VALUE.sub(r"\1…\2", without_keys(text))
    return "\n".join(map(_in_one_line, text.splitlines()))


def _in_one_line(text: str) -> str:
    return _escaped(text)[0].decode("ascii")


def _shortened(part: str) -> str:
    return part if len(part) <= MAX_LOGGED else part[:MAX_LOGGED] + "…\n"


def without_keys(text: str) -> str:
    """The text without what looks like a key of anybody's."""
    for pattern in _KEYS:
        text = pattern.sub(lambda found: (found.groupdict().get("kept") or "") + "<key>", text)
    return text


def _validation(message: str) -> str | None:
    """Turn pydantic's errors, printed as Python dictionaries, into ``place: what is wrong``; values are left out, for
    they are the caller's own text."""
    problems = []
    for line in message.splitlines()[1:]:
        found = _fields(line.strip())
        place = re.sub(r"^body\.?", "", found.get("loc", ""))
        text = found.get("msg", "")
        if text:
            problems.append(f"{place}: {text}" if place else text)
    if not problems:
        return None
    return scrub("The request is not valid: " + "; ".join(problems))


def _fields(line: str) -> dict[str, str]:
    found: dict[str, Any]
    try:
        value = ast.literal_eval(line)
    except (ValueError, SyntaxError, MemoryError, RecursionError):
        found = {
            name: single or double or re.findall(r"[^'\", ]+", several)
            for name, single, double, several in _PART.findall(line)
        }
    else:
        found = dict(value) if isinstance(value, dict) else {}
    loc = found.get("loc", "")
    if isinstance(loc, tuple | list):
        found["loc"] = ".".join(map(str, loc))
    return {name: str(found[name]) for name in ("loc", "msg") if name in found}
