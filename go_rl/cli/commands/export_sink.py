"""``go-rl export --to NOTATION``: a plan as the string, JSON or annotated model of another tool."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Annotated

import tyro

from go_rl.cli.console import console, print_json, print_line, working
from go_rl.cli.exit_codes import OK
from go_rl.cli.model_arguments import ModelArguments, read
from go_rl.core import Plan


@dataclass(frozen=True)
class ExportSink:
    """Options of ``go-rl export --to NOTATION``."""

    plan: Annotated[tyro.conf.Positional[str], tyro.conf.arg(metavar="PLAN")]
    """A plan.json."""
    source: ModelArguments
    to: Annotated[str, tyro.conf.arg(metavar="NOTATION")]
    """Notation: json, hf, vllm, torchtitan, megatron, torch, llama.cpp, openvino, onnxruntime,
    shardy, onnx or genai (docs/export.md)."""
    out: Annotated[str | None, tyro.conf.arg(metavar="FILE")] = None
    """File to write, which onnx and genai need. Default: a text goes to standard output."""
    json: bool = False
    """Print one JSON document, with the text, and nothing else."""


def names_a_sink(argv: Sequence[str]) -> bool:
    """Return whether the arguments name a notation after ``--to``."""
    from go_rl.api.sinks import SINKS

    words = " ".join(argv).replace("=", " ").split()
    return "--to" in words[:-1] and words[words.index("--to") + 1] in SINKS


def run_sink(config: ExportSink) -> int:
    """Run the command; returns the exit code."""
    from go_rl.api.sinks import export_sink

    plan, source = Plan.load(config.plan), config.source
    if not source.dim and not source.input:
        source = replace(source, dim=tuple(f"{name}={size}" for name, size in plan.dims.items()))
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
