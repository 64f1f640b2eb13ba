#!/usr/bin/env python3
"""What becomes of calls, and of the engine's work, at twice the load that real vLLM can take.

One trace of calls, drawn from a seed, is played to the same engine started three ways: bare, bare with vLLM's own limit
(`--max-num-queued-reqs`), and with the shim. The callers give each attempt a timeout and try twice more as stock SDKs do,
with their pauses and obeying Retry-After and x-should-retry. The engine is the tiny model on this machine's CPU; what it can
take is measured first. vLLM's environment must be there (`make engine`). About 7 minutes a repetition.

    make overload                                       one repetition, the table
    make overload OVERLOAD="--seeds 1,2,3 --out F"      three, and every attempt and record as files in the folder F
    make overload OVERLOAD="--arms limit,shim --load 3"
    make overload OVERLOAD="--show docs/overload/alike" the table of a run that was kept, without running anything

docs/overload.md is made by --seeds 1,2,3 --out docs/overload/alike --markdown docs/overload.md
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "environment"))
sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from tests.live.turns import go_first

import engine_env
import marked
from overload import keeping, playing
from overload.arms import Arm, arms, choose
from overload.calls import PATIENCE, Call, draw
from overload.chart import chart
from overload.table import table, words
from setup_steps import SetupError, end_on_sigterm

_started = time.monotonic()


def say(text: str) -> None:
    print(f"[overload {time.monotonic() - _started:5.0f}s] {text}", file=sys.stderr, flush=True)


def experiment(options: argparse.Namespace) -> dict[str, Any]:
    """Every arm, once a seed; the order turns from seed to seed."""
    go_first()
    paths = {name: path for name, path in engine_env.ensure(smollm2=False, check_only=True).items() if path}
    with playing.served(Arm("capacity", "bare vLLM, to measure what it can take"), paths, say) as server:
        playing.calibrate(server, options.warm_up)
        capacity = playing.calibrate(server, options.calibrate)
    rate = capacity.calls_per_second * options.load
    limits = choose(capacity, patience=options.patience * min(PATIENCE[options.callers]), spare=options.spare)
    say(f"{capacity.calls_per_second:.1f} calls/s of {capacity.service:.1f} s each; offered: {rate:.1f}; {limits}")
    known = arms(limits)
    result = keeping.head(options, capacity, rate, limits, vllm=paths["vllm_version"])
    for turn, seed in enumerate(options.seeds):
        calls = _calls(options, seed, rate)
        columns: dict[str, Any] = {}
        first = turn % len(options.arms)
        for name in [*options.arms[first:], *options.arms[:first]]:
            played = playing.run(known[name], calls, paths, warm_up=options.warm_up, say=say)
            columns[name] = played.account
            if options.out is not None:
                keeping.keep_raw(options.out, seed, known[name], played)
        if options.out is not None:
            keeping.keep_trace(options.out, seed, calls)
        result["runs"].append({"seed": seed, "arms": {name: columns[name] for name in options.arms}})
    return result


def put_into(page: Path, result: dict[str, Any]) -> None:
    """The table between the page's comments, the chart into the folder beside it."""
    marked.put(page, f"scripts/overload, callers {result['callers']}", f"{words(result)}\n\n{table(result)}")
    folder = page.with_suffix("")
    folder.mkdir(exist_ok=True)
    (folder / f"tokens-{result['callers']}.svg").write_text(chart(result), encoding="utf-8")


def _calls(options: argparse.Namespace, seed: int, rate: float) -> list[Call]:
    if options.trace is not None:
        return keeping.load_trace(options.trace)
    return draw(seed, rate=rate, seconds=options.seconds, patience=options.patience, callers=options.callers)


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=_numbers, default=[1], help="one repetition each, with commas between (1)")
    parser.add_argument("--arms", type=_names, default=["bare", "limit", "shim"], help="bare,limit,shim,shim-deadline")
    parser.add_argument("--load", type=float, default=2.0, help="offered calls as a multiple of the capacity (2)")
    parser.add_argument("--seconds", type=float, default=90.0, help="how long calls arrive (90)")
    parser.add_argument("--patience", type=float, default=8.0, help="timeout of an attempt, in seconds (8)")
    parser.add_argument(
        "--callers", choices=list(PATIENCE), default="alike", help="alike: all of one timeout (default)"
    )
    parser.add_argument("--spare", type=int, default=1, help="requests at the engine beyond what it runs at a time (1)")
    parser.add_argument("--calibrate", type=float, default=20.0, help="seconds to measure the capacity (20)")
    parser.add_argument("--warm-up", type=float, default=8.0, help="seconds of full work before each trace (8)")
    parser.add_argument("--trace", type=Path, metavar="FILE", help="play the calls that a run has kept, at their times")
    parser.add_argument("--out", type=Path, metavar="FOLDER", help="keep the result, every attempt and record there")
    parser.add_argument("--show", type=Path, metavar="FOLDER", help="run nothing; print what such a folder holds")
    parser.add_argument("--markdown", type=Path, metavar="PAGE", help="put the table into a page, the chart beside it")
    parser.add_argument("--json", action="store_true", help="print JSON instead of the table")
    return parser.parse_args()


def _numbers(text: str) -> list[int]:
    return [int(part) for part in text.split(",")]


def _names(text: str) -> list[str]:
    names = text.split(",")
    known = ("bare", "limit", "shim", "shim-deadline")
    unknown = [name for name in names if name not in known]
    if unknown:
        raise argparse.ArgumentTypeError(f"no arm is called {unknown[0]!r}; there are {', '.join(known)}")
    return names


def main() -> int:
    """Exit status: 0 measured, 1 a server could not be started or failed, 130 interrupted."""
    options = arguments()
    end_on_sigterm()
    try:
        result = keeping.load(options.show) if options.show else experiment(options)
        if options.out is not None:
            keeping.keep_result(options.out, result)
        if options.markdown is not None:
            put_into(options.markdown, result)
    except (SetupError, RuntimeError, ValueError, OSError) as error:
        print(f"overload: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("overload: interrupted; its servers have been ended", file=sys.stderr)
        return 130
    print(json.dumps(result, indent=2) if options.json else f"{words(result)}\n\n{table(result)}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
