"""``go-rl export --to NOTATION``: a plan as the string, JSON or annotated model of another tool."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated

import tyro

from go_rl.api.options import SINK_NAMES, Notation
from go_rl.cli.console import console, print_json, print_line, working
from go_rl.cli.exit_codes import OK
from go_rl.cli.model_arguments import ModelArguments, as_planned, read
from go_rl.core import Plan, SplitError
from go_rl.core.errors import nearest


@dataclass(frozen=True)
class ExportSink:
    """Options of ``go-rl export --to NOTATION``."""

    plan: Annotated[tyro.conf.Positional[str], tyro.conf.arg(metavar="PLAN")]
    """A plan.json."""
    source: ModelArguments
    to: Notation
    """Notation of another tool (docs/export.md)."""
    out: Annotated[str | None, tyro.conf.arg(metavar="FILE")] = None
    """File to write, which onnx, genai and iree need. Default: a text goes to standard output."""
    json: bool = False
    """Print one JSON document, with the text, and nothing else."""


def names_a_sink(argv: Sequence[str]) -> bool:
    """Return whether the arguments name a notation after ``--to``."""
    words = " ".join(argv).replace("=", " ").split()
    return "--to" in words[:-1] and words[words.index("--to") + 1] in SINK_NAMES


def check_folder_name(to: str) -> None:
    """Raise a `SplitError` for a folder that looks like a misspelt notation."""
    near = nearest(to, SINK_NAMES)
    if near != ".":
        raise SplitError(f"--to {to}: no notation{near} For a folder of that name write ./{to}")


def run_sink(config: ExportSink) -> int:
    """Run the command; returns the exit code."""
    from go_rl.api.plans.sinks import export_sink

    plan = Plan.load(config.plan)
    source = as_planned(config.source, plan)
    with working(f"reading {source.model}"):
        graph = read(source)
        text = export_sink(plan, source.model, config.to, config.out, graph)
    if config.json:
        print_json({"to": config.to, "text": text or None, "file": config.out})
    elif config.out is None:
        sys.stdout.write(text)
    else:
        print_line(console(), f"written to {config.out}")
    return OK
