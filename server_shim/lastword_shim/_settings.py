"""What an operator can set: ``LASTWORD_*`` environment variables, read once when the middleware is built."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BeforeValidator, Field, ValidationError
from pydantic_settings import BaseSettings, SettingsConfigDict

from lastword_shim._appending import look_for_lines, open_for_lines

PREFIX = "LASTWORD_"
_LEAST_RECORDS_BYTES = 4096  # room for a record, whatever is in it

Seconds = Annotated[float, Field(gt=0, allow_inf_nan=False)]
Count = Annotated[int, Field(ge=0)]


class SettingsError(ValueError):
    """A setting cannot be used; the message names the variable, what it held and what it accepts."""


def variable(field: str) -> str:
    """The environment variable of a field of `Settings`."""
    return PREFIX + field.upper()


def _integer(given: object) -> object:
    """A Literal of numbers takes no text, and the environment holds nothing else."""
    return int(given) if isinstance(given, str) and given.strip().isdecimal() else given


def _large_enough(size: int) -> int:
    if size != 0 and size < _LEAST_RECORDS_BYTES:
        raise ValueError
    return size


def shown(value: object) -> str:
    """A value as an operator writes it."""
    if value is None or isinstance(value, bool):
        return "on" if value else "off"
    return f"{value:g}" if isinstance(value, float) else str(value)


def _setting(meaning: str, *, takes: str, unit: str = "", default: object = None) -> Any:
    """A field whose description, values and default are told once, here; None is told as ``off``."""
    told: dict[str, Any] = {
        "meaning": meaning,
        "takes": f"{unit}, {takes}" if unit else takes,
        "default": shown(default),
    }
    description = f"{meaning} ({told['takes']}; default {told['default']})"
    return Field(default=default, description=description, json_schema_extra=told)


class Settings(BaseSettings):
    """The shim's settings, by the names of their environment variables.  A timer or limit that is None is off."""

    model_config = SettingsConfigDict(env_prefix=PREFIX, env_ignore_empty=True, extra="ignore", frozen=True)

    records: str | None = _setting(
        "Where lifecycle records are appended to as JSON Lines; ``-`` is standard output.", takes="a path, or -"
    )
    records_max_bytes: Annotated[int, AfterValidator(_large_enough)] = _setting(
        "Size at which the records' file is set aside under the name with ``.1`` and a new one begun; 0: never.",
        takes="at least 4096, or 0",
        unit="bytes",
        default=100 * 1024 * 1024,
    )
    records_keep: Annotated[int, Field(ge=0, le=1000)] = _setting(
        "How many of the files that were set aside are kept; the oldest is deleted.",
        takes="0 to 1000",
        unit="files",
        default=5,
    )
    queue_timeout: Seconds | None = _setting(
        "Longest wait until the engine begins, the shim's own queue included; the upload does not count.",
        takes="more than 0",
        unit="seconds",
    )
    first_token_timeout: Seconds | None = _setting(
        "Longest time from receipt to the first token.", takes="more than 0", unit="seconds"
    )
    idle_timeout: Seconds | None = _setting(
        "Longest time without a new token once the first has come.", takes="more than 0", unit="seconds"
    )
    total_timeout: Seconds | None = _setting(
        "Longest time from receipt to the end, on every route that makes the engine work.",
        takes="more than 0",
        unit="seconds",
    )
    context_policy: Literal["reject", "clamp"] = _setting(
        "A prompt whose explicit max_tokens does not fit the context: ``reject`` refuses it, ``clamp`` lets the engine "
        "cut and says so in ``x-lastword-effective-max-tokens``.",
        takes="reject or clamp",
        default="reject",
    )
    max_inflight: Annotated[int, Field(ge=1)] | None = _setting(
        "Most requests at the engine at a time; more wait in the shim's queue, first come first served.",
        takes="at least 1",
        unit="requests",
    )
    max_queued: Count | None = _setting(
        "Most requests that wait: with LASTWORD_MAX_INFLIGHT or LASTWORD_MAX_INFLIGHT_TOKENS in the shim's queue (none "
        "then if neither this nor LASTWORD_MAX_QUEUED_TOKENS is set), without them in the engine's. One more is refused "
        "with ``queue_overloaded``.",
        takes="0 or more",
        unit="requests",
    )
    max_inflight_tokens: Annotated[int, Field(ge=1)] | None = _setting(
        "Most prompt tokens of the requests at the engine at a time; more wait in the shim's queue. One request that is "
        "larger by itself runs alone.",
        takes="at least 1",
        unit="tokens",
    )
    max_queued_tokens: Count | None = _setting(
        "Most prompt tokens of the requests that wait, where LASTWORD_MAX_QUEUED counts them. One request that is larger "
        "by itself waits alone.",
        takes="0 or more",
        unit="tokens",
    )
    max_header_bytes: Annotated[int, Field(ge=512)] | None = _setting(
        "Largest request head: names and values of the headers, and the path with its query. A larger one is refused "
        "with ``request_too_large``, as a larger body is.",
        takes="at least 512",
        unit="bytes",
        default=65536,
    )
    max_body_bytes: Annotated[int, Field(ge=1)] | None = _setting(
        "Largest request body.", takes="at least 1", unit="bytes"
    )
    overload_status: Annotated[Literal[429, 503], BeforeValidator(_integer)] = _setting(
        "HTTP status of ``queue_overloaded``: 429 or 503.", takes="429 or 503", default=503
    )
    endpoints: bool = _setting(
        "The shim's own routes under ``/lastword/``: ``requests``, ``requests/{id}/cancel``, ``ready`` and ``metrics``.",
        takes="on or off",
        default=True,
    )
    stall_after: Seconds = _setting(
        "``/lastword/ready`` says ``stalled`` once requests wait and no token has come for so long.",
        takes="more than 0",
        unit="seconds",
        default=30.0,
    )
    otel: bool = _setting(
        "Traces and metrics through OpenTelemetry, configured by its own ``OTEL_*`` variables.",
        takes="on or off",
        default=False,
    )
    hold: Annotated[float, Field(ge=0, allow_inf_nan=False)] = _setting(
        "How long a stream's status line waits for the first event, so that an early error has its true status.",
        takes="0 or more",
        unit="seconds",
        default=1.0,
    )

    @classmethod
    def load(cls, *, only_look: bool = False) -> Settings:
        """Read the environment.  The records' file is made if it is not there, unless it is ``only_look``ed at.

        Raises:
            SettingsError: a variable cannot be read; or the records' file or stream cannot be appended to.
        """
        try:
            settings = cls()
        except ValidationError as error:
            raise SettingsError("; ".join(_explain(problem) for problem in error.errors())) from None
        if settings.records == "-" and sys.__stdout__ is None:  # its number is a socket's by now, perhaps
            raise SettingsError(f"{PREFIX}RECORDS='-' cannot be used: standard output is closed")
        if settings.records not in {None, "-"}:
            try:
                if only_look:
                    look_for_lines(str(settings.records))
                else:
                    os.close(open_for_lines(str(settings.records)))
            except OSError as error:
                message = f"{variable('records')}={settings.records!r} cannot be opened for appending: {error.strerror}"
                raise SettingsError(message) from None
        return settings

    @classmethod
    def table(cls) -> list[tuple[str, str, str, str]]:
        """All there are, in order: the variable, what it takes, its default and its meaning."""
        told: Iterable[tuple[str, Any]] = ((name, field.json_schema_extra) for name, field in cls.model_fields.items())
        return [(variable(name), each["takes"], each["default"], each["meaning"]) for name, each in told]

    def variables(self, fields: Iterable[str]) -> list[str]:
        """The variables of those of the ``fields`` that are not off."""
        return [variable(field) for field in fields if getattr(self, field) is not None]

    def told(self) -> str:
        """What is not at its default, as it would be set: ``LASTWORD_HOLD=2, …``, or ``defaults``."""
        active = self.model_dump(exclude_defaults=True)
        return ", ".join(f"{variable(field)}={shown(value)}" for field, value in active.items()) or "defaults"


def _explain(problem: object) -> str:
    assert isinstance(problem, dict)  # pydantic's ErrorDetails
    field = str(problem["loc"][0])
    told: Any = Settings.model_fields[field].json_schema_extra
    return f"{variable(field)}={problem['input']!r} cannot be used: it takes {told['takes']}"


# For help(Settings), which shows no field's description by itself.
Settings.__doc__ = "\n".join([
    str(Settings.__doc__), "",
    *(f"{variable(name)}: {field.description}" for name, field in Settings.model_fields.items()),
])  # fmt: skip
