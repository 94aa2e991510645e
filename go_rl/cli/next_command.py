"""The last line of a command: the one that a user naturally runs next, with the real names."""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from dataclasses import MISSING, fields
from pathlib import Path

from rich.console import Console

from go_rl.cli.console import print_line
from go_rl.cli.options.configuration import ModelArguments
from go_rl.core import Hardware, Objective, OpGraph, Topology

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


def planner_words(graph: OpGraph) -> tuple[str, list[str]]:
    """Return the command that plans a graph, and the options that it needs.

    Training graphs move data both ways, which a ring does not; a profile is of its own hardware.
    """
    if not graph.has_flops and graph.seconds:
        return "partition", ["--objective", Objective.MAX_LOAD]
    return ("optimize" if graph.is_backward.any() else "partition"), []


def planner_for(hardware: Hardware) -> list[str]:
    """Return the command that plans `EXAMPLE_MODEL` for hardware's links."""
    if hardware.links.topology is Topology.TREE:
        return ["partition", EXAMPLE_MODEL, "--objective", Objective.MAX_LOAD]
    ring = hardware.links.topology is Topology.RING
    return ["partition" if ring else "optimize", EXAMPLE_MODEL]
