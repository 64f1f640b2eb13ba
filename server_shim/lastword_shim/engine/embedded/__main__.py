"""The command: ``python -m lastword_shim.engine.embedded``."""

from __future__ import annotations

import argparse
import socket
import sys
import threading
import time
from collections.abc import Sequence
from typing import Any, cast

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

        app = Shim(app)
    listener = _listen(arguments.host, arguments.port)
    server = uvicorn.Server(uvicorn.Config(cast("Any", app), log_level="warning", timeout_graceful_shutdown=3))
    host = f"[{arguments.host}]" if ":" in arguments.host else arguments.host
    url = f"http://{host}:{listener.getsockname()[1]}/v1"
    threading.Thread(target=_announce, args=(server, url), daemon=True).start()
    if arguments.until_stdin_closes:
        threading.Thread(target=_exit_with_stdin, args=(server,), daemon=True).start()
    server.run(sockets=[listener])


def _listen(host: str, port: int) -> socket.socket:
    try:
        return socket.create_server((host, port), family=socket.AF_INET6 if ":" in host else socket.AF_INET)
    except (OSError, OverflowError) as error:
        reason = str(getattr(error, "strerror", None) or error).partition(" (while")[0]  # Python adds the address again
        sys.exit(
            f"embedded engine: cannot listen on {host} port {port}: {reason}; --port takes another, 0 any free one"
        )


def _announce(server: Any, url: str) -> None:
    while not server.started and not server.should_exit:
        time.sleep(0.01)
    sys.stdout.write(f"ready {url}\n")
    sys.stdout.flush()


def _exit_with_stdin(server: Any) -> None:
    sys.stdin.buffer.read()
    server.should_exit = True


if __name__ == "__main__":
    main()
