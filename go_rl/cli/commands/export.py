"""``go-rl export``: a plan carried out of go_rl."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import tyro

from go_rl.api.options import SINK_NAMES, Notation
from go_rl.cli.console import complain, console, print_json, print_line, print_table, working
from go_rl.cli.exit_codes import OK
from go_rl.cli.folders import check_apart
from go_rl.cli.model_arguments import ModelArguments, as_planned, load_options, read
from go_rl.cli.next_command import say_next
from go_rl.core import Plan, ReadError, SplitError
from go_rl.core.errors import nearest
from go_rl.core.files.whole_file import writing
from go_rl.report.notes import note_lines
from go_rl.report.text_table import TextTable


@dataclass(frozen=True)
class Export:
    """Options of ``go-rl export``."""

    plan: Annotated[tyro.conf.Positional[str], tyro.conf.arg(metavar="PLAN")]
    """A plan.json."""
    source: ModelArguments
    to: Annotated[str, tyro.conf.arg(metavar="FOLDER")]
    """A new or empty folder, for one program a stage (ONNX, of jax.export or .pt2, as the model is)
    and stages.json; or a notation of
    docs/export.md, such as vllm, which has options of its own (go-rl export --to vllm --help)."""
    json: bool = False
    """Print the manifest as one JSON document and nothing else."""


def options_of(argv: Sequence[str]) -> type[Export | ExportSink]:
    """Return the options for a notation, if the arguments name one, else for a folder."""
    return ExportSink if names_a_sink(argv) else Export


def run(config: Export | ExportSink) -> int:
    """Run the command; returns the exit code."""
    if isinstance(config, ExportSink):
        return run_sink(config)
    from go_rl.api.plans.stages import export_stages

    check_folder_name(config.to)
    plan = Plan.load(config.plan)
    reading = as_planned(config.source, plan, config.plan)
    said = working(f"reading {config.source.model}")
    with said, reading as source, writing(config.to, ReadError):
        manifest = export_stages(plan, source.model, config.to, **load_options(source))
    if config.json:
        print_json(manifest.to_json())
        return OK
    heads = ("stage", "device", "operators", "weights, MB", "receives", "sends", "predicted, ms")
    cells = [
        (
            stage.file, f"{stage.device} ({stage.kind})", f"{stage.nodes:,}",
            f"{stage.weight_bytes / 1e6:,.4g}", str(len(stage.inputs)), str(len(stage.outputs)),
            "" if stage.predicted_seconds is None else f"{1e3 * stage.predicted_seconds:.4g}",
        )
        for stage in manifest.stages
    ]  # fmt: skip
    print_table(console(), TextTable(f"{Path(config.to)}: stages of the plan", heads, cells))
    print_line(console(), f"written to {config.to}")
    say_next(console(), "run", config.to, "--check")
    return OK


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
    from go_rl.api.plans.sinks import export_sink, sink_notes

    plan = Plan.load(config.plan)
    if config.out is not None:
        check_apart(Path(config.out), "--out", Path(config.plan))
    reading = as_planned(config.source, plan, config.plan)
    with working(f"reading {config.source.model}"), reading as source:
        graph = read(source)
        text = export_sink(plan, source.model, config.to, config.out, graph)
    notes = sink_notes(plan, graph, config.to)
    if config.json:
        found = {"to": config.to, "text": text or None, "file": config.out}
        print_json(found | {"notes": list(notes)})
        return OK
    for line in note_lines(notes):
        complain(line)
    if config.out is None:
        sys.stdout.write(text)
    else:
        print_line(console(), f"written to {config.out}")
    return OK
