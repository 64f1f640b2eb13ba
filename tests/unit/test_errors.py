"""The exceptions: which class for which code, and what each carries."""

from __future__ import annotations

import copy
import inspect
import pickle
import re

import pytest

import lastword
from lastword import _errors
from lastword._classify import ErrorInfo, make_error
from lastword._codes import CODES, Category, Code, OutcomeName
from lastword._errors import (
    Cancelled,
    InvalidToolArguments,
    LastwordError,
    RequestError,
    RequestTimeout,
    ServerError,
    StreamIncomplete,
    error_of,
)
from lastword._outcome import Attempt, Partial, ToolCall

CLASSES = {
    name: kind
    for name, kind in vars(_errors).items()
    if inspect.isclass(kind) and issubclass(kind, LastwordError) and kind.__module__ == _errors.__name__
}
ATTEMPT = Attempt(1, "queue_overloaded", 503, "full", 1000.0, 0.5)


def full(code: Code = Code.QUEUE_OVERLOADED) -> LastwordError:
    """An error with everything set."""
    info = make_error(
        code,
        "8 requests wait",
        origin="shim",
        type="server_error",
        param="p",
        status=503,
        request_id="r-1",
        retry_after=1.5,
        details={"queued": 8},
        raw="{}",
    )
    return error_of(info, partial=Partial(text="a", chunks=1), attempts=[ATTEMPT, ATTEMPT])


def drawn() -> dict[str, tuple[str, set[str]]]:
    """The tree at the top of the module: class → (its base, the codes that stand beside it)."""
    found: dict[str, tuple[str, set[str]]] = {}
    path: list[str] = []
    for line in (_errors.__doc__ or "").splitlines():
        match = re.match(r"^((?:│   |├── |└── )*)([A-Z]\w+)(.*)$", line)
        if match and (match[1] or match[2] == "LastwordError"):
            depth = len(match[1]) // 4
            path[depth:] = [match[2]]
            found[match[2]] = (path[depth - 1] if depth else "Exception", set())
        if found and path:
            codes = {word for word in re.findall(r"\w+", match[3] if match else line) if word in CODES}
            found[path[-1]][1].update(codes)
    return found


def test_the_tree_that_is_drawn_is_the_tree() -> None:
    """Every class stands under its base."""
    assert {name: base for name, (base, _) in drawn().items()} == {
        name: kind.__base__.__name__ for name, kind in CLASSES.items() if kind.__base__
    }


def test_the_codes_that_are_drawn_are_those_of_the_table() -> None:
    """A reader of the tree knows what to catch."""
    beside = {code: name for name, (_, codes) in drawn().items() for code in codes}
    assert {code: type(error_of(make_error(Code(code), "m"))).__name__ for code in beside} == beside


@pytest.mark.parametrize("code", list(Code))
def test_every_code_has_a_class_that_fits_its_category(code: Code) -> None:
    """Its own, or its category's: fixable to change, retryable to wait, cancelled to know."""
    error = error_of(make_error(code, "m"))
    special = (StreamIncomplete, RequestTimeout, _errors.ConnectionFailed)
    expected = {Category.FIXABLE: RequestError, Category.RETRYABLE: ServerError, Category.CANCELLED: Cancelled}
    assert isinstance(error, (expected[CODES[code].category], *special))
    assert isinstance(error, StreamIncomplete) == (CODES[code].outcome is OutcomeName.INCOMPLETE)
    assert isinstance(error, Cancelled) == (CODES[code].outcome is OutcomeName.CANCELLED)


def test_every_class_is_some_codes_or_a_base() -> None:
    """No class that nothing raises."""
    raised = {type(error_of(make_error(code, "m"))) for code in Code}
    assert set(CLASSES.values()) - raised == {LastwordError, RequestError, InvalidToolArguments}


@pytest.mark.parametrize(
    ("category", "kind"), [("fixable", RequestError), ("retryable", ServerError), ("cancelled", Cancelled)]
)
def test_a_code_of_a_later_contract_takes_its_categorys_class(category: str, kind: type[LastwordError]) -> None:
    """And says that this version does not know it."""
    error = error_of(ErrorInfo(code="brand_new", category=category, outcome="failed", retryable=False, message="m"))
    assert (type(error), error.code, "does not know" in error.action) == (kind, "brand_new", True)


def test_every_attribute_is_the_infos() -> None:
    """What was classified, what was received, and what each try met."""
    error = full()
    assert {name: value for name, value in vars(error).items() if name != "_info"} == {
        "code": "queue_overloaded",
        "category": "retryable",
        "retryable": True,
        "outcome": "failed",
        "message": "8 requests wait",
        "type": "server_error",
        "param": "p",
        "status": 503,
        "request_id": "r-1",
        "retry_after": 1.5,
        "attempts": [ATTEMPT, ATTEMPT],
        "partial": Partial(text="a", chunks=1),
        "origin": "shim",
        "details": {"queued": 8},
        "raw": "{}",
    }
    assert error.action == CODES["queue_overloaded"].action
    assert error.args == ("8 requests wait",)


def test_what_is_missing_is_none_or_empty() -> None:
    """Every attribute is there on every error."""
    error = error_of(make_error(Code.CANCELLED, "m"))
    assert (error.status, error.request_id, error.raw, error.attempts, error.partial) == (
        None,
        None,
        None,
        [],
        Partial(),
    )


@pytest.mark.parametrize(
    ("error", "expected"),
    [
        (full(), "8 requests wait [queue_overloaded, HTTP 503, request r-1; 2 attempts]. "),
        (error_of(make_error(Code.CANCELLED, "stopped")), "stopped [cancelled]. "),
        (error_of(make_error(Code.CANCELLED, "stopped"), attempts=[ATTEMPT]), "stopped [cancelled]. "),
    ],
)
def test_str_says_what_happened_and_what_to_do(error: LastwordError, expected: str) -> None:
    """Message, code, status, id, number of attempts, action."""
    assert str(error) == expected + error.action


def test_the_body_is_the_contracts() -> None:
    """Ready to be passed on by a server that is itself a client."""
    body = full().body["error"]
    assert (body["code"], body["retry_after_ms"], body["details"]) == ("queue_overloaded", 1500, {"queued": 8})


@pytest.mark.parametrize("code", list(Code))
def test_errors_survive_pickling_and_copying(code: Code) -> None:
    """Across processes nothing is lost."""
    error = full(code)
    for other in (pickle.loads(pickle.dumps(error)), copy.copy(error), copy.deepcopy(error)):
        assert (type(other), vars(other), str(other)) == (type(error), vars(error), str(error))


def test_invalid_tool_arguments_survive_pickling() -> None:
    """The call and its text come along; the answer itself is complete."""
    error = InvalidToolArguments(ToolCall("id", "f", "{"), reason="cut")
    other = pickle.loads(pickle.dumps(error))
    assert (vars(other), str(other)) == (vars(error), str(error))
    assert (other.outcome, other.raw, other.tool_call.name) == ("completed", "{", "f")
    assert "tool call f are not JSON (cut)" in str(other)
    assert "without a name" in str(InvalidToolArguments(ToolCall(None, "", "{"), reason="cut"))


@pytest.mark.parametrize(
    ("code", "timer"),
    [
        (Code.CONNECT_TIMEOUT, "connect"),
        (Code.FIRST_TOKEN_TIMEOUT, "first_token"),
        (Code.GENERATION_STALLED, "idle"),
        (Code.GENERATION_TIMEOUT, "total"),
        (Code.DEADLINE_EXCEEDED, "total"),
    ],
)
def test_a_timeout_says_which_timer_fired(code: Code, timer: str) -> None:
    """The client's or the server's; origin says whose."""
    error = error_of(make_error(code, "m"))
    assert isinstance(error, RequestTimeout)
    assert error.timer == timer


def test_no_name_shadows_a_builtin_and_all_are_public() -> None:
    """``from lastword import *`` changes nothing; every class can be caught by name."""
    import builtins

    assert [name for name in CLASSES if hasattr(builtins, name)] == []
    assert {name: getattr(lastword, name, None) for name in CLASSES} == CLASSES
