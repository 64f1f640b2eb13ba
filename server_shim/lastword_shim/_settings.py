"""What an operator can set: ``LASTWORD_*`` environment variables, read once when the middleware is built."""

from __future__ import annotations

import os
from typing import Annotated, Literal

from pydantic import BeforeValidator, Field, ValidationError
from pydantic_settings import BaseSettings, SettingsConfigDict

PREFIX = "LASTWORD_"

Seconds = Annotated[float, Field(gt=0, allow_inf_nan=False)]
Count = Annotated[int, Field(ge=0)]


class SettingsError(ValueError):
    """A setting cannot be used; the message names the variable, what it held and what it accepts."""


def _integer(given: object) -> object:
    """A Literal of numbers takes no text, and the environment holds nothing else."""
    return int(given) if isinstance(given, str) and given.strip().isdecimal() else given


class Settings(BaseSettings):
    """The shim's settings.  Durations are seconds, sizes bytes; a timer or limit that is None is off."""

    model_config = SettingsConfigDict(env_prefix=PREFIX, env_ignore_empty=True, extra="ignore", frozen=True)

    records: str | None = None
    """File that lifecycle records are appended to as JSON Lines; ``-`` is standard output."""

    queue_timeout: Seconds | None = None
    """Longest wait before the engine begins, the shim's own queue included."""

    first_token_timeout: Seconds | None = None
    """Longest time from receipt to the first token."""

    idle_timeout: Seconds | None = None
    """Longest time without a new token once the first has come."""

    total_timeout: Seconds | None = None
    """Longest time from receipt to the end."""

    context_policy: Literal["reject", "clamp"] = "reject"
    """A prompt whose explicit max_tokens does not fit the context: refuse it, or let the engine cut and say so in
    ``x-lastword-effective-max-tokens``."""

    max_inflight: Annotated[int, Field(ge=1)] | None = None
    """Most requests handed to the engine at a time; more wait in the shim's queue, first come first served."""

    max_queued: Count | None = None
    """Most requests that wait: in the shim's queue if ``max_inflight`` is set (none then wait by default), else
    in the engine's."""

    max_body_bytes: Annotated[int, Field(ge=1)] | None = None
    """Largest request body."""

    overload_status: Annotated[Literal[429, 503], BeforeValidator(_integer)] = 503
    """HTTP status of ``queue_overloaded``."""

    hold: Annotated[float, Field(ge=0, allow_inf_nan=False)] = 1.0
    """How long a stream's status line is held back for its first event, so that an early error has its true status."""

    @classmethod
    def load(cls) -> Settings:
        """Read the environment.

        Raises:
            SettingsError: a variable cannot be read; or the records' file cannot be opened for appending.
        """
        try:
            settings = cls()
        except ValidationError as error:
            raise SettingsError("; ".join(_explain(problem) for problem in error.errors())) from None
        if settings.records not in {None, "-"}:
            try:
                os.close(os.open(str(settings.records), os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o640))
            except OSError as error:
                message = f"{PREFIX}RECORDS={settings.records!r} cannot be opened for appending: {error.strerror}"
                raise SettingsError(message) from None
        return settings


def _explain(problem: object) -> str:
    assert isinstance(problem, dict)  # pydantic's ErrorDetails
    name = PREFIX + str(problem["loc"][0]).upper()
    return f"{name}={problem['input']!r} cannot be used: {problem['msg']}"
