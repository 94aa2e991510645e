"""The last line of a command: the one that a user naturally runs next, with the real names."""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from dataclasses import MISSING, fields
from pathlib import Path

from rich.console import Console

from go_rl.cli.console import print_line
from go_rl.cli.model_arguments import ModelArguments

EXAMPLE_MODEL = "zoo:resnet50"
"""What a next command plans where the user has named no model."""


def say_next(out: Console, *words: str | Path) -> None:
    """Print ``next: go-rl ...``; words are quoted as a shell needs them."""
    print_line(out, f"next: go-rl {shlex.join(str(word) for word in words)}")


def model_words(source: ModelArguments) -> list[str]:
    """Return a model as the user named it, with the options that say how it is read."""
    return [source.model, *_options(source)]


def _options(source: ModelArguments) -> Iterator[str]:
    for option in fields(source):
        value, flag = getattr(source, option.name), f"--{option.name.replace('_', '-')}"
        if option.default is MISSING or value == option.default:
            continue
        if value is True:
            yield flag
        else:
            for one in value if isinstance(value, tuple) else (value,):
                yield from (flag, str(one))
