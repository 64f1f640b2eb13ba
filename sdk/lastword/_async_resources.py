"""The async client's resources: as ``_resources``, with ``await``."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, Protocol, cast, overload

from lastword._async_stream import AsyncStream
from lastword._endpoints import CHAT, COMPLETIONS, MODELS, Endpoint
from lastword._errors import LastwordError, outcome_of
from lastword._outcome import Outcome
from lastword._resources import Params, given

if TYPE_CHECKING:
    from openai.pagination import AsyncPage
    from openai.types import Completion, Model
    from openai.types.chat import ChatCompletion, ChatCompletionChunk


class _OpenStream(Protocol):
    async def __call__(self, endpoint: Endpoint, params: Params, *, quiet: bool = False) -> AsyncStream[Any]: ...


@dataclass(frozen=True, slots=True)
class _Resource:
    _request: Callable[[Endpoint, Params], Awaitable[tuple[Any, Outcome]]]
    _stream: _OpenStream

    async def _create(self, endpoint: Endpoint, params: Params) -> Any:
        if params.get("stream"):
            return await self._stream(endpoint, params)
        return (await self._request(endpoint, params))[0]

    async def _create_with_outcome(self, endpoint: Endpoint, params: Params) -> tuple[Any, Any]:
        try:
            if params.get("stream"):
                return await self._stream(endpoint, params, quiet=True), None
            return await self._request(endpoint, params)
        except LastwordError as error:
            return None, outcome_of(error)


class AsyncChatCompletions(_Resource):
    """``AsyncClient.chat.completions``"""

    @overload
    async def create(
        self, *, model: str, messages: Iterable[object], stream: Literal[True], **params: object
    ) -> AsyncStream[ChatCompletionChunk]: ...
    @overload
    async def create(
        self, *, model: str, messages: Iterable[object], stream: Literal[False] | None = None, **params: object
    ) -> ChatCompletion: ...
    @overload
    async def create(
        self, *, model: str, messages: Iterable[object], stream: bool, **params: object
    ) -> ChatCompletion | AsyncStream[ChatCompletionChunk]: ...
    async def create(
        self, *, model: str, messages: Iterable[object], stream: bool | None = None, **params: object
    ) -> ChatCompletion | AsyncStream[ChatCompletionChunk]:
        """POST /chat/completions with the openai package's arguments; unknown ones are passed through.

        Returns ``openai.types.chat.ChatCompletion``, or with ``stream=True`` an ``AsyncStream`` of ``ChatCompletionChunk``.
        Raises ``LastwordError``.
        """
        result = await self._create(CHAT, given(params, model=model, messages=messages, stream=stream))
        return cast("ChatCompletion | AsyncStream[ChatCompletionChunk]", result)


class AsyncCompletions(_Resource):
    """``AsyncClient.completions``"""

    @overload
    async def create(
        self, *, model: str, prompt: object, stream: Literal[True], **params: object
    ) -> AsyncStream[Completion]: ...
    @overload
    async def create(
        self, *, model: str, prompt: object, stream: Literal[False] | None = None, **params: object
    ) -> Completion: ...
    @overload
    async def create(
        self, *, model: str, prompt: object, stream: bool, **params: object
    ) -> Completion | AsyncStream[Completion]: ...
    async def create(
        self, *, model: str, prompt: object, stream: bool | None = None, **params: object
    ) -> Completion | AsyncStream[Completion]:
        """POST /completions with the openai package's arguments; ``prompt`` is a text, token ids, or a list of either.

        Returns ``openai.types.Completion``, or with ``stream=True`` an ``AsyncStream`` of it.  Raises ``LastwordError``.
        """
        result = await self._create(COMPLETIONS, given(params, model=model, prompt=prompt, stream=stream))
        return cast("Completion | AsyncStream[Completion]", result)


class AsyncModels(_Resource):
    """``AsyncClient.models``"""

    async def list(self, **params: object) -> AsyncPage[Model]:
        """GET /models.  Returns the openai package's page; iterate it, or read ``data``.  Raises ``LastwordError``."""
        return cast("AsyncPage[Model]", await self._create(MODELS, params))


class AsyncChat(_Resource):
    """``AsyncClient.chat``"""

    @property
    def completions(self) -> AsyncChatCompletions:
        """Chat completions."""
        return AsyncChatCompletions(self._request, self._stream)


class AsyncChatCompletionsWithOutcome(_Resource):
    """``AsyncClient.with_outcome.chat.completions``"""

    @overload
    async def create(
        self, *, model: str, messages: Iterable[object], stream: Literal[True], **params: object
    ) -> tuple[AsyncStream[ChatCompletionChunk] | None, Outcome | None]: ...
    @overload
    async def create(
        self, *, model: str, messages: Iterable[object], stream: Literal[False] | None = None, **params: object
    ) -> tuple[ChatCompletion | None, Outcome]: ...
    @overload
    async def create(
        self, *, model: str, messages: Iterable[object], stream: bool, **params: object
    ) -> tuple[ChatCompletion | AsyncStream[ChatCompletionChunk] | None, Outcome | None]: ...
    async def create(
        self, *, model: str, messages: Iterable[object], stream: bool | None = None, **params: object
    ) -> tuple[ChatCompletion | AsyncStream[ChatCompletionChunk] | None, Outcome | None]:
        """As ``AsyncClient.chat.completions.create``, returning ``(value, Outcome)``; see ``Client.with_outcome``."""
        return await self._create_with_outcome(CHAT, given(params, model=model, messages=messages, stream=stream))


class AsyncCompletionsWithOutcome(_Resource):
    """``AsyncClient.with_outcome.completions``"""

    @overload
    async def create(
        self, *, model: str, prompt: object, stream: Literal[True], **params: object
    ) -> tuple[AsyncStream[Completion] | None, Outcome | None]: ...
    @overload
    async def create(
        self, *, model: str, prompt: object, stream: Literal[False] | None = None, **params: object
    ) -> tuple[Completion | None, Outcome]: ...
    @overload
    async def create(
        self, *, model: str, prompt: object, stream: bool, **params: object
    ) -> tuple[Completion | AsyncStream[Completion] | None, Outcome | None]: ...
    async def create(
        self, *, model: str, prompt: object, stream: bool | None = None, **params: object
    ) -> tuple[Completion | AsyncStream[Completion] | None, Outcome | None]:
        """As ``AsyncClient.completions.create``, returning ``(value, Outcome)``; see ``Client.with_outcome``."""
        return await self._create_with_outcome(COMPLETIONS, given(params, model=model, prompt=prompt, stream=stream))


class AsyncModelsWithOutcome(_Resource):
    """``AsyncClient.with_outcome.models``"""

    async def list(self, **params: object) -> tuple[AsyncPage[Model] | None, Outcome]:
        """As ``AsyncClient.models.list``, returning ``(value, Outcome)``."""
        return await self._create_with_outcome(MODELS, params)


class AsyncChatWithOutcome(_Resource):
    """``AsyncClient.with_outcome.chat``"""

    @property
    def completions(self) -> AsyncChatCompletionsWithOutcome:
        """Chat completions."""
        return AsyncChatCompletionsWithOutcome(self._request, self._stream)


class AsyncWithOutcome(_Resource):
    """``AsyncClient.with_outcome``"""

    @property
    def chat(self) -> AsyncChatWithOutcome:
        """Chat."""
        return AsyncChatWithOutcome(self._request, self._stream)

    @property
    def completions(self) -> AsyncCompletionsWithOutcome:
        """Completions."""
        return AsyncCompletionsWithOutcome(self._request, self._stream)

    @property
    def models(self) -> AsyncModelsWithOutcome:
        """Models."""
        return AsyncModelsWithOutcome(self._request, self._stream)
