"""OpenTelemetry's measurements of requests: the GenAI conventions' for servers, and counters of what was wasted."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

from lastword._codes import CODES

if TYPE_CHECKING:
    from opentelemetry.metrics import Meter

    from lastword_shim.account.lifecycle import Lifecycle

# The conventions' own bucket boundaries, in seconds.
_DURATIONS: Final = (0.01, 0.02, 0.04, 0.08, 0.16, 0.32, 0.64, 1.28, 2.56, 5.12, 10.24, 20.48, 40.96, 81.92)
_FIRST_TOKENS: Final = (*(0.001, 0.005, 0.01, 0.02, 0.04, 0.06, 0.08, 0.1, 0.25, 0.5, 0.75, 1.0, 2.5, 5.0, 7.5, 10.0),)
_TOKENS: Final = (0.01, 0.025, 0.05, 0.075, 0.1, 0.15, 0.2, 0.3, 0.4, 0.5, 0.75, 1.0, 2.5)
_MOST_MODELS: Final = 100
_OTHER: Final = "_OTHER"


class Measures:
    """The instruments, made with ``meter``."""

    def __init__(self, meter: Meter) -> None:
        self._duration = meter.create_histogram(
            "gen_ai.server.request.duration",
            unit="s",
            description="Time from receipt to the end.",
            explicit_bucket_boundaries_advisory=_DURATIONS,
        )
        self._first_token = meter.create_histogram(
            "gen_ai.server.time_to_first_token",
            unit="s",
            description="Time from receipt to the first token.",
            explicit_bucket_boundaries_advisory=_FIRST_TOKENS,
        )
        self._per_token = meter.create_histogram(
            "gen_ai.server.time_per_output_token",
            unit="s",
            description="Time per token after the first.",
            explicit_bucket_boundaries_advisory=_TOKENS,
        )
        self._wasted_tokens = meter.create_counter(
            "lastword.wasted_tokens", unit="{token}", description="Tokens generated for clients that left."
        )
        self._wasted_time = meter.create_counter(
            "lastword.wasted_time", unit="s", description="Time of generation for clients that left."
        )
        self._disconnects = meter.create_counter(
            "lastword.client_disconnects", unit="{request}", description="Requests whose client left before the end."
        )
        self._models: set[str] = set()

    def take(self, record: Mapping[str, Any], life: Lifecycle, provider: str, context: Any) -> None:
        """Measure one request that has ended, if it asked for work."""
        if record["operation"] is None:
            return
        common: dict[str, str] = {"gen_ai.operation.name": record["operation"], "gen_ai.provider.name": provider}
        model = self._model(record)
        if model is not None:
            common["gen_ai.request.model"] = model
        code = record["error_code"]
        why = {} if code is None else {"error.type": code if code in CODES else _OTHER}
        self._duration.record(record["total_time_ms"] / 1000, {**common, **why}, context)
        if record["client_disconnected"]:
            self._disconnects.add(1, {**common, "lastword.disconnect_phase": record["disconnect_phase"]}, context)
            if record["wasted"]:
                self._wasted_tokens.add(record["completion_tokens"] or 0, common, context)
                self._wasted_time.add(life.wasted_seconds, common, context)
        if code is None:
            self._pace(record, common, context)

    def _pace(self, record: Mapping[str, Any], common: Mapping[str, str], context: Any) -> None:
        """As the conventions have it, of answers that succeeded."""
        if record["time_to_first_token_ms"] is not None:
            self._first_token.record(record["time_to_first_token_ms"] / 1000, common, context)
        choices = max(len(record["finish_reasons"]), 1)
        later = (record["completion_tokens"] or 0) / choices - 1
        if record["generation_time_ms"] is not None and later > 0:
            self._per_token.record(record["generation_time_ms"] / 1000 / later, common, context)

    def _model(self, record: Mapping[str, Any]) -> str | None:
        """The model as an attribute of few values: only names that were answered by, for a caller can ask for any."""
        model: str | None = record["model"]
        if model is not None and model not in self._models:
            if record["outcome"] != "completed" or len(self._models) >= _MOST_MODELS:
                return _OTHER
            self._models.add(model)
        return model
