"""Commands that take another one: what belongs to which is never guessed, and ``--`` between them says it."""

from __future__ import annotations

import shlex
from typing import Any

from typer.core import TyperCommand


class TakesCommand(TyperCommand):
    """A command whose arguments are a command line. Where that has options, ``--`` must stand before it."""

    allow_interspersed_args = False  # what stands behind the first argument is not ours

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Refuse options behind the first word of a command that no ``--`` introduces.

        The context is typer's own or click's, depending on the version of typer.
        """
        given = list(args)
        rest = super().parse_args(ctx, args)
        command = ctx.params.get("command") or ()
        options = [each for each in command if each.startswith("-")]
        if options and "--" not in given:
            ctx.fail(
                f"Whose option is {options[0]}? Put -- before the command, and options of lastword before that: "
                f"{ctx.command_path} [OPTIONS] -- {shlex.join(command)}"
            )
        return rest
