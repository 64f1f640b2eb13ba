"""The command: ``python -m lastword_shim.engine.embedded``."""

from __future__ import annotations

import argparse
import socket
import sys
import threading
import time
from collections.abc import Sequence
from typing import Any, NoReturn, cast

from lastword_shim._listening import ListenError, end_with_stdin, listen, say_ready
from lastword_shim.engine.embedded.app import EmbeddedEngine
from lastword_shim.engine.embedded.shapes import ENDINGS
from lastword_shim.protocol.wire import App


def _arguments(argv: Sequence[str] | None) -> argparse.Namespace:
    endings = "\n".join(f"  {ending:<13} {brief}" for ending, brief in ENDINGS.items())
    parser = argparse.ArgumentParser(
        prog="python -m lastword_shim.engine.embedded",
        description="A small OpenAI-compatible engine without a model, behind the shim.",
        epilog=f"The request header x-demo-ending makes an answer end in one of these ways:\n{endings}",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--host", default="127.0.0.1")
    parser.add_argument("--port", type=int, default=8000, help="0: any free one; the ready line tells which")
    parser.add_argument("--pace", type=float, default=0.03, help="seconds a token takes (default: %(default)s)")
    parser.add_argument(
        "--max-model-len", type=int, default=2048, help="limit of prompt and answer together, in tokens"
    )
    parser.add_argument("--bare", action="store_true", help="without the shim: the raw engine")
    parser.add_argument("--until-stdin-closes", action="store_true", help="exit when standard input ends")
    return parser.parse_args(argv)


def main(argv: Sequence[str] | None = None) -> None:
    """Serve until SIGTERM or SIGINT; print ``ready URL`` on standard output once requests are taken."""
    arguments = _arguments(argv)
    import uvicorn

    app: App = EmbeddedEngine(pace=arguments.pace, max_model_len=arguments.max_model_len)
    if not arguments.bare:
        from lastword_shim import Shim

        app = shim = Shim(app)
        if shim.fault is not None:
            _fail(shim.fault)
    try:
        listener = listen(arguments.host, arguments.port)
    except ListenError as error:
        _fail(str(error))
    server = uvicorn.Server(uvicorn.Config(cast("Any", app), log_level="warning", timeout_graceful_shutdown=3))
    threading.Thread(target=_announce, args=(server, arguments.host, listener), daemon=True).start()
    if arguments.until_stdin_closes:
        end_with_stdin(server)
    server.run(sockets=[listener])


def _fail(message: str) -> NoReturn:
    sys.stderr.write(f"embedded engine: {message}\n")
    sys.exit(2)


def _announce(server: Any, host: str, listener: socket.socket) -> None:
    while not server.started and not server.should_exit:
        time.sleep(0.01)
    say_ready(host, listener, where=sys.stdout)


if __name__ == "__main__":
    try:
        main()
    except KeyboardInterrupt:  # uvicorn raises it again once it has stopped in order
        sys.exit(130)
