"""The last line of a command: the one that a user naturally runs next, with the real names."""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from dataclasses import MISSING, Field, fields, is_dataclass
from pathlib import Path
from typing import Any

from rich.console import Console

from go_rl.cli.console import print_line
from go_rl.cli.model_arguments import ModelArguments
from go_rl.cli.parsing.parse import SWITCH

EXAMPLE_MODEL = "zoo:resnet50"
"""Model of a next command where the user has named none."""


def say_next(out: Console, *words: str | Path) -> None:
    """Print ``next: go-rl ...``; words are quoted as a shell needs them."""
    print_line(out, f"next: go-rl {shlex.join(str(word) for word in words)}")


def model_words(source: ModelArguments) -> list[str]:
    """Return a model as the user named it, with the options that say how it is read."""
    return [source.model, *changed_options(source)]


def changed_options(options: Any, defaults: Any = None) -> Iterator[str]:
    """Yield the words of the options that are not the defaults; those of nested classes, too.

    Args:
        options: dataclass of a command line.
        defaults: another of its kind; None: the defaults of its fields.
    """
    for option in fields(options):
        value, flag = getattr(options, option.name), f"--{option.name.replace('_', '-')}"
        default = getattr(defaults, option.name) if defaults else _default(option)
        if default is MISSING or value == default:
            continue
        if is_dataclass(value):
            yield from changed_options(value, default)
        elif option.type == "bool | None":
            yield from (flag, next(word for word, each in SWITCH.items() if each is value))
        elif value is True:
            yield flag
        else:
            for one in value if isinstance(value, tuple) else (value,):
                yield from (flag, _written(one))


def _written(value: Any) -> str:
    whole = isinstance(value, float) and value.is_integer()
    return str(int(value) if whole else value)


def _default(option: Field[Any]) -> Any:
    made = option.default_factory
    return option.default if made is MISSING else made()
