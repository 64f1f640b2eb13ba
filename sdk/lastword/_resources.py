"""What a client offers: the openai package's names, each a line over the client's two ways to call."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, Protocol, cast, overload

from lastword._endpoints import CHAT, COMPLETIONS, MODELS, Endpoint
from lastword._errors import LastwordError, outcome_of
from lastword._outcome import Outcome
from lastword._stream import Stream

if TYPE_CHECKING:
    from openai.pagination import SyncPage
    from openai.types import Completion, Model
    from openai.types.chat import ChatCompletion, ChatCompletionChunk

Params = Mapping[str, object]


class _OpenStream(Protocol):
    def __call__(self, endpoint: Endpoint, params: Params, *, quiet: bool = False) -> Stream[Any]: ...


@dataclass(frozen=True, slots=True)
class _Resource:
    _request: Callable[[Endpoint, Params], tuple[Any, Outcome]]
    _stream: _OpenStream

    def _create(self, endpoint: Endpoint, params: Params) -> Any:
        return self._stream(endpoint, params) if params.get("stream") else self._request(endpoint, params)[0]

    def _create_with_outcome(self, endpoint: Endpoint, params: Params) -> tuple[Any, Any]:
        try:
            if params.get("stream"):
                return self._stream(endpoint, params, quiet=True), None
            return self._request(endpoint, params)
        except LastwordError as error:
            return None, outcome_of(error)


class ChatCompletions(_Resource):
    """``client.chat.completions``"""

    @overload
    def create(
        self, *, model: str, messages: Iterable[object], stream: Literal[True], **params: object
    ) -> Stream[ChatCompletionChunk]: ...
    @overload
    def create(
        self, *, model: str, messages: Iterable[object], stream: Literal[False] | None = None, **params: object
    ) -> ChatCompletion: ...
    @overload
    def create(
        self, *, model: str, messages: Iterable[object], stream: bool, **params: object
    ) -> ChatCompletion | Stream[ChatCompletionChunk]: ...
    def create(
        self, *, model: str, messages: Iterable[object], stream: bool | None = None, **params: object
    ) -> ChatCompletion | Stream[ChatCompletionChunk]:
        """POST /chat/completions with the openai package's arguments; unknown ones are passed through.

        Returns ``openai.types.chat.ChatCompletion``, or with ``stream=True`` a ``Stream`` of ``ChatCompletionChunk``.
        Raises ``LastwordError``.
        """
        result = self._create(CHAT, given(params, model=model, messages=messages, stream=stream))
        return cast("ChatCompletion | Stream[ChatCompletionChunk]", result)


class Completions(_Resource):
    """``client.completions``"""

    @overload
    def create(self, *, model: str, prompt: object, stream: Literal[True], **params: object) -> Stream[Completion]: ...
    @overload
    def create(
        self, *, model: str, prompt: object, stream: Literal[False] | None = None, **params: object
    ) -> Completion: ...
    @overload
    def create(
        self, *, model: str, prompt: object, stream: bool, **params: object
    ) -> Completion | Stream[Completion]: ...
    def create(
        self, *, model: str, prompt: object, stream: bool | None = None, **params: object
    ) -> Completion | Stream[Completion]:
        """POST /completions with the openai package's arguments; ``prompt`` is a text, token ids, or a list of either.

        Returns ``openai.types.Completion``, or with ``stream=True`` a ``Stream`` of it.  Raises ``LastwordError``.
        """
        result = self._create(COMPLETIONS, given(params, model=model, prompt=prompt, stream=stream))
        return cast("Completion | Stream[Completion]", result)


class Models(_Resource):
    """``client.models``"""

    def list(self, **params: object) -> SyncPage[Model]:
        """GET /models.  Returns the openai package's page; iterate it, or read ``data``.  Raises ``LastwordError``."""
        return cast("SyncPage[Model]", self._create(MODELS, params))


class Chat(_Resource):
    """``client.chat``"""

    @property
    def completions(self) -> ChatCompletions:
        """Chat completions."""
        return ChatCompletions(self._request, self._stream)


class ChatCompletionsWithOutcome(_Resource):
    """``client.with_outcome.chat.completions``"""

    @overload
    def create(
        self, *, model: str, messages: Iterable[object], stream: Literal[True], **params: object
    ) -> tuple[Stream[ChatCompletionChunk] | None, Outcome | None]: ...
    @overload
    def create(
        self, *, model: str, messages: Iterable[object], stream: Literal[False] | None = None, **params: object
    ) -> tuple[ChatCompletion | None, Outcome]: ...
    @overload
    def create(
        self, *, model: str, messages: Iterable[object], stream: bool, **params: object
    ) -> tuple[ChatCompletion | Stream[ChatCompletionChunk] | None, Outcome | None]: ...
    def create(
        self, *, model: str, messages: Iterable[object], stream: bool | None = None, **params: object
    ) -> tuple[ChatCompletion | Stream[ChatCompletionChunk] | None, Outcome | None]:
        """As ``client.chat.completions.create``, returning ``(value, Outcome)``; see ``Client.with_outcome``."""
        return self._create_with_outcome(CHAT, given(params, model=model, messages=messages, stream=stream))


class CompletionsWithOutcome(_Resource):
    """``client.with_outcome.completions``"""

    @overload
    def create(
        self, *, model: str, prompt: object, stream: Literal[True], **params: object
    ) -> tuple[Stream[Completion] | None, Outcome | None]: ...
    @overload
    def create(
        self, *, model: str, prompt: object, stream: Literal[False] | None = None, **params: object
    ) -> tuple[Completion | None, Outcome]: ...
    @overload
    def create(
        self, *, model: str, prompt: object, stream: bool, **params: object
    ) -> tuple[Completion | Stream[Completion] | None, Outcome | None]: ...
    def create(
        self, *, model: str, prompt: object, stream: bool | None = None, **params: object
    ) -> tuple[Completion | Stream[Completion] | None, Outcome | None]:
        """As ``client.completions.create``, returning ``(value, Outcome)``; see ``Client.with_outcome``."""
        return self._create_with_outcome(COMPLETIONS, given(params, model=model, prompt=prompt, stream=stream))


class ModelsWithOutcome(_Resource):
    """``client.with_outcome.models``"""

    def list(self, **params: object) -> tuple[SyncPage[Model] | None, Outcome]:
        """As ``client.models.list``, returning ``(value, Outcome)``."""
        return self._create_with_outcome(MODELS, params)


class ChatWithOutcome(_Resource):
    """``client.with_outcome.chat``"""

    @property
    def completions(self) -> ChatCompletionsWithOutcome:
        """Chat completions."""
        return ChatCompletionsWithOutcome(self._request, self._stream)


class WithOutcome(_Resource):
    """``client.with_outcome``"""

    @property
    def chat(self) -> ChatWithOutcome:
        """Chat."""
        return ChatWithOutcome(self._request, self._stream)

    @property
    def completions(self) -> CompletionsWithOutcome:
        """Completions."""
        return CompletionsWithOutcome(self._request, self._stream)

    @property
    def models(self) -> ModelsWithOutcome:
        """Models."""
        return ModelsWithOutcome(self._request, self._stream)


def given(params: Params, **named: object) -> dict[str, object]:
    """The arguments of a call without those left out."""
    return {**{name: value for name, value in named.items() if value is not None}, **params}
