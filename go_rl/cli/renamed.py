"""Old commands and flags are answered with the new ones."""

from __future__ import annotations

from collections.abc import Sequence

from go_rl.core import GoRLError

COMMANDS = {"package": "hardware"}
"""What commands were called before, and are called now."""
FLAGS = {"--package": "--hardware"}
"""The same of flags."""


class UsageError(GoRLError):
    """The command line uses a name that is gone."""


def check_renamed(argv: Sequence[str]) -> None:
    """Raise a `UsageError` that names the new command or flag, where an old one is used."""
    if argv and argv[0] in COMMANDS:
        raise UsageError(f"go-rl {argv[0]} is called go-rl {COMMANDS[argv[0]]} now")
    for word in argv:
        flag = word.partition("=")[0]
        if flag in FLAGS:
            raise UsageError(f"{flag} is called {FLAGS[flag]} now")
