"""OpenTelemetry: one SERVER span a request, and measurements, both made of the record that the request leaves.

Names are those of the GenAI and HTTP conventions where they have one, by the mapping of the contract's registry;
``lastword.*`` else.  Nothing here can fail a request, and no text of a prompt or an answer gets here.
"""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Callable, Iterator, Mapping
from contextvars import ContextVar
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from lastword._codes import CODES, OPENTELEMETRY, Category
from lastword_shim.account.lifecycle import MOST_PATH, Lifecycle
from lastword_shim.account.otel_measures import Measures
from lastword_shim.account.otel_providers import providers
from lastword_shim.protocol.redact import loggable_traceback
from lastword_shim.protocol.routes import route_of
from lastword_shim.protocol.wire import Scope, by_name, path_of

if TYPE_CHECKING:
    from opentelemetry.trace import Span

_log: Final = logging.getLogger("lastword_shim")
_METHODS: Final = frozenset({"GET", "HEAD", "POST", "PUT", "DELETE", "CONNECT", "OPTIONS", "TRACE", "PATCH", "QUERY"})
_CHOSEN_BY_THE_CALLER: Final = ("/openai/deployments/", "/engines/")  # a part of the path; a route has few values
_TOLD_BY_THE_SPAN: Final = frozenset({"side", "received_at", "endpoint"})


@dataclass(slots=True)
class _Open:
    """A request whose span has begun."""

    span: Span
    ended: bool = False


_OPEN: ContextVar[_Open | None] = ContextVar("lastword_span", default=None)


class Telemetry:
    """Spans and measurements of one process.  ``provider`` names the engine, as far as it is known by then.

    Raises:
        OtelError: OpenTelemetry cannot be set up as its variables ask.
    """

    def __init__(self, provider: Callable[[], str]) -> None:
        tracers, meters = providers()  # which says so where nothing of it is installed
        from opentelemetry import context, propagate, trace

        self._tracer = tracers.get_tracer("lastword_shim")
        self._measures = Measures(meters.get_meter("lastword_shim"))
        self._provider = provider
        self._context, self._propagate, self._trace = context, propagate, trace
        self._complained = False

    @contextlib.contextmanager
    def request(self, scope: Scope) -> Iterator[Scope]:
        """A span round one request; gives the scope whose headers make that span the parent of what is inside."""
        opened, inward, token = None, scope, None
        try:
            opened, inward = self._begin(scope)
            token = self._context.attach(self._trace.set_span_in_context(opened.span))
        except Exception as error:  # noqa: BLE001 (whatever is wrong with it, the request goes on)
            self._complain(error)
        mark = _OPEN.set(opened)
        try:
            yield inward
        finally:
            _OPEN.reset(mark)
            if token is not None:
                self._context.detach(token)
            if opened is not None and not opened.ended:
                opened.span.end()

    def ended(self, record: Mapping[str, Any], life: Lifecycle) -> None:
        """The request of the running task has left its record."""
        opened = _OPEN.get()
        if opened is None:
            return
        try:
            self._end(opened, record)
            context = self._trace.set_span_in_context(opened.span)
            self._measures.take(record, life, self._provider(), context)
        except Exception as error:  # noqa: BLE001 (as above)
            self._complain(error)

    def _begin(self, scope: Scope) -> tuple[_Open, Scope]:
        parent = self._propagate.extract(by_name(scope["headers"]))
        method = scope["method"] if scope["method"] in _METHODS else "_OTHER"
        path = path_of(scope)
        template = path.rstrip("/")  # of slashes at its end there can be any number
        route = route_of(method, path)
        named = route.works and not path.startswith(_CHOSEN_BY_THE_CALLER)
        attributes = {
            "http.request.method": method,
            "url.path": path[:MOST_PATH],
            "url.scheme": scope.get("scheme", "http"),
        }
        if named:
            attributes["http.route"] = template[:MOST_PATH]
        if route.operation is not None:
            attributes["gen_ai.operation.name"] = route.operation
        span = self._tracer.start_span(
            f"{method} {template}" if named else method,
            context=parent,
            kind=self._trace.SpanKind.SERVER,
            attributes=attributes,
        )
        return _Open(span), self._handed_on(scope, self._trace.set_span_in_context(span, parent))

    def _handed_on(self, scope: Scope, context: Any) -> Scope:
        carrier: dict[str, str] = {}
        self._propagate.inject(carrier, context)
        ours = [(name.lower().encode("latin-1"), value.encode("latin-1")) for name, value in carrier.items()]
        fields = {name for name, _ in ours}
        inward = dict(scope)
        inward["headers"] = [*(pair for pair in scope["headers"] if pair[0].lower() not in fields), *ours]
        return inward

    def _end(self, opened: _Open, record: Mapping[str, Any]) -> None:
        span = opened.span
        opened.ended = True
        if span.is_recording():
            if record["operation"] is not None:
                span.set_attribute("gen_ai.provider.name", self._provider())
            span.set_attributes(dict(_attributes(record)))
            if _is_the_servers(record):
                span.set_status(self._trace.StatusCode.ERROR)
        span.end()

    def _complain(self, error: Exception) -> None:
        if not self._complained:
            where = loggable_traceback(error)
            _log.error("OpenTelemetry failed; its spans and measurements are not complete\n%s", where)
        self._complained = True


def _attributes(record: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    for member, value in record.items():
        told = [each for each in value if each is not None] if isinstance(value, list) else value
        if told is not None and told != [] and member not in _TOLD_BY_THE_SPAN:
            yield OPENTELEMETRY.get(member, f"lastword.{member}"), told


def _is_the_servers(record: Mapping[str, Any]) -> bool:
    """Whether it failed, and not by a mistake of the caller's, who is told what to mend (HTTP's rule for spans)."""
    code = CODES.get(record["error_code"] or "")
    fixable = code is not None and code.category == Category.FIXABLE and (record["http_status"] or 500) < 500
    return record["outcome"] in {"failed", "incomplete"} and not fixable
