"""Validation against the contract's JSON Schemas (needs the ``conformance`` extra)."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any

from lastword._contract import schemas

if TYPE_CHECKING:
    from jsonschema import Draft202012Validator


def violations(schema: str, instance: object) -> list[str]:
    """Give what a schema (``error``, ``outcome``, ``adapter#/$defs/hello``, …) objects to in a JSON value; nothing if valid."""
    return [f"{schema}: {error.json_path}: {error.message}" for error in _validator(schema).iter_errors(instance)]


@cache
def _validator(schema: str) -> Draft202012Validator:
    from jsonschema import Draft202012Validator
    from referencing import Registry, Resource

    known: Registry[Any] = Registry().with_resources(
        (name, Resource.from_contents(each)) for name, each in schemas().items()
    )
    checker = Draft202012Validator.FORMAT_CHECKER
    reference = {"$ref": f"urn:lastword:contract:1:{schema}"}
    return Draft202012Validator(reference, registry=known, format_checker=checker)
