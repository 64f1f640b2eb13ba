"""What the experiment asks of the engine beside the trace."""

from __future__ import annotations

import asyncio

from overload.callers import Attempt, Target
from overload.calls import Call
from overload.playing import play_and_look

ANSWER = b'{"choices":[{"index":0,"finish_reason":"length"}],"usage":{"completion_tokens":5}}'


def test_the_engine_is_looked_at_when_the_last_call_has_come_and_not_when_it_is_answered() -> None:
    """The server answers nothing before the look, so a look after the answers would never be."""

    async def played() -> tuple[list[Attempt], dict[str, float]]:
        looked, loop = asyncio.Event(), asyncio.get_running_loop()

        def generated() -> float:
            loop.call_soon_threadsafe(looked.set)
            return 42.0

        async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            await reader.readuntil(b"\r\n\r\n")
            await looked.wait()
            writer.write(b"HTTP/1.1 200 OK\r\ncontent-length: %d\r\n\r\n%b" % (len(ANSWER), ANSWER))
            writer.close()
            await writer.wait_closed()

        calls = [Call(number, number * 0.2, False, 20, 5, timeout=20, luck=1) for number in range(2)]
        async with await asyncio.start_server(serve, "127.0.0.1", 0) as server:
            target = Target(server.sockets[0].getsockname()[1])
            return await play_and_look(calls, target, lambda _: None, generated)

    attempts, looked = asyncio.run(played())
    assert [attempt.ending for attempt in attempts] == ["completed"] * 2
    assert looked["generated_while_calls_came"] == 42
    assert 0.2 <= looked["seconds_while_calls_came"] < 5
