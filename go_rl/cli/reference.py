"""`reference`: ``docs/reference.md``, the options of every command, from their dataclasses.

Run: ``python -m go_rl.cli.reference > docs/reference.md``, or ``make reference``.
"""

from __future__ import annotations

import re
import sys
import warnings
from collections.abc import Iterator
from typing import Any

import tyro

from go_rl.cli.parsing.help_text import plain_help
from go_rl.cli.parsing.parse import constructors, style
from go_rl.cli.table import COMMANDS, VARIANTS, Command
from go_rl.core.hardware.processor import own_target

HEAD = """\
# Options of every command

Made by `make reference` from the dataclasses that the commands read; do not edit. The functions of
`go_rl` take the same options with underscores in their names.
"""
NO_DEFAULT = ("None", own_target())
"""Defaults that the page leaves to the option's sentence."""
_DEFAULT = re.compile(r" *\((default: .*|repeatable|required)\)$", re.DOTALL)


def reference() -> str:
    """Return the page: a table of options for each command."""
    sections = [
        "\n".join(_section(command, words))
        for command in COMMANDS
        for words in VARIANTS.get(command.words, ((),))
    ]
    return "\n".join([HEAD, *sections])


def _section(command: Command, words: tuple[str, ...]) -> Iterator[str]:
    yield f"## go-rl {' '.join((command.words, *words))}\n"
    yield f"{command.summary}\n"
    yield "| option | default | meaning |\n|---|---|---|"
    actions = [each for each in _parser(command, words)._actions if each.dest != "help"]
    yield from map(_row, sorted(actions, key=lambda each: bool(each.option_strings)))
    yield ""


def _parser(command: Command, words: tuple[str, ...]) -> Any:
    kind = command.kind(words)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # tyro offers no other description
        return tyro.extras.get_parser(kind, config=style(kind), registry=constructors())


def _row(action: Any) -> str:
    text = " ".join((action.help or "").split())
    found = _DEFAULT.search(text)
    said = "" if found is None else found[1].removeprefix("default: ")
    said = "" if said in NO_DEFAULT else said
    meaning = text if found is None else text[: found.start()]
    metavar = " ".join(plain_help(str(action.metavar or "")).split())
    names = " ".join(filter(None, ("".join(action.option_strings[:1]), metavar)))
    cells = (f"`{names}`", f"`{said}`" if said else "", meaning)
    return "| " + " | ".join(cell.replace("|", r"\|") for cell in cells) + " |"


if __name__ == "__main__":
    sys.stdout.write(reference())
