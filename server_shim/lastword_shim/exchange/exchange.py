"""One HTTP exchange: who may end it, and that it ends once.

The application runs in a task of its own.  Its answer, the timers, the client's disconnect, a refusal and a shutdown
each may *decide*; the first decision stands, and only `_end` acts on it.  From then on nothing of the application's
leaves any more.  All of it runs on one event loop, so "first" needs no lock.
"""

from __future__ import annotations

import asyncio
import contextvars
import logging
from typing import TYPE_CHECKING, Any, Final

from lastword._classify import ErrorInfo, make_error
from lastword._codes import CODES, Category, Code
from lastword_shim.account.lifecycle import Lifecycle
from lastword_shim.admission.refusals import shutting_down
from lastword_shim.engine import enter
from lastword_shim.engine.stated import read_stated
from lastword_shim.exchange.inbound import Inbound
from lastword_shim.exchange.intake import Intake
from lastword_shim.exchange.outbound import Outbound
from lastword_shim.exchange.standing import Standing
from lastword_shim.exchange.tasks import SideTasks, let_go, stop
from lastword_shim.exchange.telling import Teller
from lastword_shim.exchange.timers import Timers
from lastword_shim.protocol.readings import Verdict, stopped
from lastword_shim.protocol.redact import as_word
from lastword_shim.protocol.settling import escaped, unexpected
from lastword_shim.protocol.wire import App, Message, Receive, Scope, Send

if TYPE_CHECKING:
    from lastword_shim._core import Core

TURN: Final = 64
"""Sends after which an application that waits for nothing else lets others have their turn.  Not after each: one that is
cancelled in a send drops what it reads from without closing it."""
_log: Final = logging.getLogger("lastword_shim")


class Exchange(Standing):
    """One request and its answer."""

    def __init__(self, core: Core, scope: Scope, receive: Receive, send: Send) -> None:
        self._core = core
        self._scope = scope
        self._in = Inbound(core, scope, receive)
        self._ticket = self._in.ticket
        self.life = Lifecycle(
            self._in.request_id, self._in.attempt, self._in.path, self._ticket, deadline_ms=self._in.deadline_ms
        )
        self._out = Outbound(send, self._ticket, request_id=self._in.request_id, on_content=self.life.content)
        self.life.operation = self._in.ask.operation
        self._timers = Timers(core.settings, self.life)
        self._decided: asyncio.Future[Verdict] = asyncio.get_running_loop().create_future()
        self._hang_up = asyncio.Event()
        self._teller = Teller(core, scope, self._in, self._out)
        self._recorded = False
        self._sends = 0
        self._hold: asyncio.TimerHandle | None = None
        self._side = SideTasks(self._client_left)
        self._task: asyncio.Task[Any] | None = None

    # What others in this process ask and do.

    @property
    def shows_tokens(self) -> bool:
        """Whether its tokens can be seen as they come, so that their absence means something."""
        return self._in.generates and self._sees_tokens()

    def cancel(self) -> None:
        """End it because somebody on the caller's behalf said so; the caller is told."""
        message = "The request was cancelled by a call to this server's cancel endpoint."
        self._decide(Verdict(error=make_error(Code.CANCELLED, message, origin="shim"), by_engine=False))

    def shut_down(self) -> None:
        """End it because the server stops."""
        self._decide(Verdict(error=shutting_down(), by_engine=False))

    def give_up(self) -> None:
        """Let go of it, terminal or not: its client does not read, or its application does not stop."""
        if self._task is not None:
            self._task.cancel()

    async def run(self, app: App) -> None:
        """Serve it, from the first byte to the record."""
        self._task = asyncio.current_task()
        context = contextvars.copy_context()
        context.run(enter, self._ticket)
        if (lost := await self._in.lost_body()) is not None:
            self._refuse(lost)
        inner = asyncio.create_task(self._call(app), context=context)
        self._core.register.add(self)
        try:
            await self._until_decided(inner)
            await self._end(inner)
        except asyncio.CancelledError:
            inner.cancel()
            await self._end_now()
            raise
        except Exception as error:  # the server's, or a mistake of ours: the server ends it, and the record stays
            self._out.close()
            told, self._teller.told = self._teller.told, self._teller.told or stopped()
            try:  # what has failed here may fail again
                self._teller.told = told or unexpected(error, self._in.request_id, secrets=self._in.secrets)
            finally:
                self._record(self._decided.result() if self._decided.done() else Verdict(by_engine=False))
                await self._stop(inner)
            raise
        finally:
            if self._hold is not None:
                self._hold.cancel()
            self._side.cancel()
            self._in.entry.leave()
            self._core.register.discard(self)

    # What the application sees.

    async def _call(self, app: App) -> None:
        fault = self._in.head_fault()
        if fault is not None:
            self._refuse(fault)
        if self._decided.done():
            return
        intake = Intake(
            self._in, self._side, self._hang_up, admit=self._admit, refuse=self._refuse, left=self._client_left
        )
        await app(self._in.inward_scope(), intake.receive, self._send)

    async def _admit(self, body: bytes) -> bool:
        """Take a place for the body, or for the last part of it; whether it may go on."""
        self.life.operation, self.life.model = self._in.ask.operation, self._in.ask.model
        self.life.stream = self._in.ask.stream if self._in.generates else None
        self.life.asked_at = self.life.clock()
        self._ticket.max_tokens = self._in.ask.max_tokens
        self._side.start(self._watch())
        if not await self._in.take_place(body, self._began, tells=self.shows_tokens, decided=self._decided):
            return False
        self.life.queued_at = self.life.clock()
        self._core.register.progress.begin(self)
        return True

    def _refuse(self, error: ErrorInfo) -> None:
        self._decide(Verdict(error=error, by_engine=False))

    async def _send(self, message: Message) -> None:
        self._sends += 1
        if self._sends % TURN == 0:
            await asyncio.sleep(0)
        if self._decided.done():
            return
        if message["type"] == "http.response.start" and self._out.reading is None:
            self._out.open(message, self._in.ask)
            if self._out.is_events:
                loop = asyncio.get_running_loop()
                self._hold = loop.call_later(self._core.settings.hold, self._stop_holding)
        elif message["type"] == "http.response.body" and self._out.reading is not None:
            body = bytes(message.get("body", b""))
            leaving, verdict = self._out.take(body, last=not message.get("more_body", False))
            if leaving:
                began = self.life.clock()
                try:
                    await self._out.leave(leaving)
                except OSError:  # ASGI 2.4's way to say that the client has left
                    self._client_left()
                    return
                self._timers.written(began, self.life.clock())
            if verdict is not None:
                self._decide(verdict)

    def _stop_holding(self) -> None:
        if not self._decided.done():
            self._side.start(self._out.stop_holding())

    async def _watch(self) -> None:
        await self._in.until_gone()
        self._client_left()

    # Deciding: the first one stands.

    def _decide(self, verdict: Verdict) -> None:
        if not self._decided.done():
            self._decided.set_result(verdict)

    def _client_left(self) -> None:
        if not self._decided.done():
            self._sees_tokens()
            self.life.client_left()
            brief = CODES[Code.CLIENT_DISCONNECTED].brief
            self._decide(Verdict(error=make_error(Code.CLIENT_DISCONNECTED, brief), by_engine=False, gone=True))

    def _sees_tokens(self) -> bool:
        """Bring the token counts up to date; whether tokens can be seen at all, by the engine's word or on the wire."""
        engine = self._core.engine
        counted = engine is not None and self._in.generates and engine.refresh(self._ticket)
        return counted or self._out.is_events or self._in.ask.stream

    def _began(self) -> float | None:
        """When the engine began with it, as far as that can be seen by now."""
        self._sees_tokens()
        seen = [at for at in (self._ticket.scheduled_at, self.life.first_token_at) if at is not None]
        return min(seen, default=None)

    async def _until_decided(self, inner: asyncio.Task[None]) -> None:
        either: list[asyncio.Future[Any]] = [inner, self._decided]
        while not self._decided.done() and not inner.done():
            now, sees = self.life.clock(), self._sees_tokens()
            works, generates, busy = self._in.works, self._in.generates, self._out.busy
            expiry, pause = self._timers.look(now, works=works, generation=generates, sees_tokens=sees, busy=busy)
            if expiry is not None:
                self.life.timeout_kind = expiry.kind
                self._decide(Verdict(error=expiry.error(), by_engine=False))
                return
            await asyncio.wait(either, timeout=pause, return_when=asyncio.FIRST_COMPLETED)
        if not self._decided.done():
            self._decide(self._application_ended(inner))

    def _application_ended(self, inner: asyncio.Task[None]) -> Verdict:
        """Before its answer did."""
        error: ErrorInfo | None = None
        problem = asyncio.CancelledError() if inner.cancelled() else inner.exception()
        if problem is not None:
            error = escaped(problem, self._known(problem), self._in.request_id, secrets=self._in.secrets)
        if self._out.reading is not None:
            return self._out.reading.cut(error)
        return Verdict(error=error or make_error(Code.INTERNAL_SERVER_ERROR, "the application did not answer"))

    def _known(self, problem: BaseException) -> ErrorInfo | None:
        """What the engine makes of an exception that came out of its application."""
        return self._core.engine.explain(problem) if self._core.engine is not None else None

    # Ending: happens once, on the verdict.

    async def _end(self, inner: asyncio.Task[None]) -> None:
        verdict = self._decided.result()
        self._sees_tokens()  # while the engine still has it
        if verdict.error is None:
            try:
                await self._out.succeed(verdict.last)
            except OSError:
                self.life.client_left()
            self.life.ended_at = self.life.clock()
            self._record(verdict)
            self._in.entry.leave(answered=True)
            await let_go(inner, self._hang_up, self._in.request_id, secrets=self._in.secrets, explain=self._known)
            return
        inner.add_done_callback(lambda _: self._in.entry.leave())
        if verdict.gone:
            self._out.close()
        else:
            self._hang_up.set()  # the engine stops at once, however long the client takes to hear of it
            await self._teller.tell(verdict)
        self.life.ended_at = self.life.clock()  # what the application still does is not the client's time
        await self._stop(inner)
        self.life.stopped_at = self.life.clock()
        self._record(verdict)

    async def _stop(self, inner: asyncio.Task[None]) -> None:
        await stop(inner, self._hang_up, self._in.request_id)
        if self._core.engine is not None and not self._in.ask.background:
            await self._core.engine.release(self._ticket)

    async def _end_now(self) -> None:
        """The server cancels what runs.  What can be said without waiting for the client is still said."""
        self.shut_down()
        verdict = self._decided.result()
        try:
            if verdict.error is None:  # success that could not be told is none
                self._teller.told = shutting_down()
            elif not verdict.gone and self._teller.told is None:
                await self._teller.tell(verdict, hurry=True)
        finally:
            self._out.close()
            self._record(verdict)

    def _record(self, verdict: Verdict) -> None:
        if self._recorded:
            return
        self._recorded = True
        life, reading = self.life, self._out.reading
        self._sees_tokens()
        life.ended_at = life.clock() if life.ended_at is None else life.ended_at
        error = self._teller.told or verdict.error
        if error is None and life.gone_at is not None:
            error = make_error(Code.CLIENT_DISCONNECTED, CODES[Code.CLIENT_DISCONNECTED].brief)
        if reading is not None:
            own = self._ticket.secrets
            words = reading.finish_reasons.items()
            life.finish_reasons = {index: word and as_word(own.without_keys(word)) for index, word in words}
            life.usage = reading.usage
            read_stated(self._ticket, reading.extras)
        self._in.entry.learn(life.prompt_tokens)
        untouched = self._ticket.submitted_at is None and life.first_token_at is None
        engine_tells = (self._core.engine is not None and self._in.generates) or self._ticket.refusal is not None
        fixable = error is not None and error.category == Category.FIXABLE
        life.rejected = life.queued_at is None or (untouched and verdict.by_engine and (engine_tells or fixable))
        if verdict.silent:
            self._core.metrics.without_done.inc()
        self._core.recorder.write(life, error, self._out.status)
