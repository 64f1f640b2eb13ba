"""Parsed JSON into the openai package's own types, fast.

Same values as the package's ``construct``: nothing is validated, unknown fields are kept, a ``finish_reason`` that the
type does not list stays as it is.  The difference is that each class's fields are examined once and not for every
chunk.  ``lastword`` imports without openai; the types are loaded when the first answer needs them.
"""

from __future__ import annotations

import types
from collections.abc import Callable, Mapping
from functools import cache
from typing import TYPE_CHECKING, Any, Literal, Union, get_args, get_origin

if TYPE_CHECKING:
    from pydantic import BaseModel

Build = Callable[[Any], Any]
_SCALARS = (str, int, bool, object, Any, type(None))


def _load_openai() -> None:
    """Import the package as a whole before any of its parts: threads that begin with different parts at the same moment
    wait for each other inside its import cycles, and Python ends that with an ImportError."""
    import openai  # noqa: F401


@cache
def chat_chunk() -> Build:
    """Builds ``openai.types.chat.ChatCompletionChunk``."""
    _load_openai()
    from openai.types.chat import ChatCompletionChunk

    return model_builder(ChatCompletionChunk)


@cache
def chat_completion() -> Build:
    """Builds ``openai.types.chat.ChatCompletion``."""
    _load_openai()
    from openai.types.chat import ChatCompletion

    return model_builder(ChatCompletion)


@cache
def completion() -> Build:
    """Builds ``openai.types.Completion``, which is also the chunk of a completions stream."""
    _load_openai()
    from openai.types import Completion

    return model_builder(Completion)


@cache
def model_page() -> Build:
    """Builds ``openai.pagination.SyncPage[openai.types.Model]``."""
    _load_openai()
    from openai.pagination import SyncPage
    from openai.types import Model

    return _any_builder(SyncPage[Model])


@cache
def async_model_page() -> Build:
    """Builds ``openai.pagination.AsyncPage[openai.types.Model]``."""
    _load_openai()
    from openai.pagination import AsyncPage
    from openai.types import Model

    return _any_builder(AsyncPage[Model])


@cache
def model_builder(cls: type[BaseModel]) -> Build:
    """A function from a JSON object to an instance of ``cls``; a value that is no object is returned as it is."""
    plain: dict[str, str] = {}  # JSON name to attribute, for values that are taken as they are
    built: dict[str, tuple[str, Build]] = {}
    defaults: dict[str, Any] = {}
    for name, field in cls.model_fields.items():
        key = field.alias or name
        build = _value_builder(field.annotation, field.metadata)
        defaults[name] = None if field.is_required() else field.get_default(call_default_factory=True)
        if build is None:
            plain[key] = name
        else:
            built[key] = (name, build)
    new, set_attribute = cls.__new__, object.__setattr__

    def build_model(values: Any) -> Any:
        if values.__class__ is not dict:
            return values
        fields, extra, given = defaults.copy(), {}, set()
        for key, value in values.items():
            name = plain.get(key)
            if name is None:
                entry = built.get(key)
                if entry is None:
                    extra[key] = value
                    continue
                name = entry[0]
                if value is not None:
                    fields[name] = entry[1](value)
            elif value is not None:
                fields[name] = value
            given.add(name)
        model = new(cls)
        set_attribute(model, "__dict__", fields)
        set_attribute(model, "__pydantic_private__", None)
        set_attribute(model, "__pydantic_extra__", extra)
        set_attribute(model, "__pydantic_fields_set__", given)
        return model

    return build_model


def _value_builder(annotation: Any, metadata: list[Any]) -> Build | None:
    """How to build a field's value; None where it is taken as it is."""
    origin, arguments = get_origin(annotation), get_args(annotation)
    if origin in (Union, types.UnionType):
        present = [argument for argument in arguments if argument is not type(None)]
        if len(present) == 1:
            return _value_builder(present[0], metadata)
        return None if all(_is_scalar(argument) for argument in present) else _any_builder(annotation, metadata)
    if _is_scalar(annotation):
        return None
    if annotation is float:
        return _to_float
    if origin is list:
        item = _value_builder(arguments[0], [])
        return None if item is None else _list_builder(item)
    if isinstance(annotation, type) and hasattr(annotation, "model_fields"):
        return model_builder(annotation)
    return _any_builder(annotation, metadata)


def _is_scalar(annotation: Any) -> bool:
    return get_origin(annotation) is Literal or annotation in _SCALARS


def _list_builder(item: Build) -> Build:
    def build_list(values: Any) -> Any:
        return [item(value) for value in values] if values.__class__ is list else values

    return build_list


def _to_float(value: Any) -> Any:
    try:
        return float(value) if value.__class__ is int and float(value) == value else value
    except OverflowError:
        return value


def _any_builder(annotation: Any, metadata: list[Any] | None = None) -> Build:
    """The openai package's own loose construction, for the rarer shapes: unions of models, mappings, generics.

    ``metadata`` is the field's; it names the member that tells the models of a union apart.
    """
    from openai._models import construct_type

    def build_any(value: Any) -> Any:
        try:
            return construct_type(value=value, type_=annotation, metadata=metadata)
        except OverflowError:  # an integer beyond every float
            return value

    return build_any


def with_request_id(result: Any, request_id: str | None) -> Any:
    """``result`` with ``_request_id`` set, as the openai package does it."""
    object.__setattr__(result, "_request_id", request_id)
    return result


def jsonable(value: object) -> object:
    """What ``json.dumps`` cannot write by itself: a model (an answer's message put back into ``messages``), an iterable."""
    dump = getattr(value, "model_dump", None)
    if callable(dump):
        return dump(mode="json", by_alias=True, exclude_unset=True)
    if isinstance(value, Mapping):
        return dict(value)
    if hasattr(value, "__iter__") and not isinstance(value, bytes | bytearray):
        return list(value)
    raise TypeError(f"a {type(value).__name__} cannot be written as JSON")
