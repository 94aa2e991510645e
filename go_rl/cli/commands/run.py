"""``go-rl run``: exported stages on this machine's cores."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import tyro

from go_rl.cli.console import console, print_json, print_line, print_table, working
from go_rl.cli.exit_codes import OK, REJECTED
from go_rl.cli.folders import check_file
from go_rl.cli.model_arguments import Dims, sizes_of
from go_rl.core import ExecutionError
from go_rl.core.config_checks import NOT_NEGATIVE, check_ranges
from go_rl.core.printable import counted, listed, message_line
from go_rl.plans.pipeline.config import PipelineConfig
from go_rl.report.text_table import TextTable

if TYPE_CHECKING:
    from go_rl.api.plans.stages import PipelineAudit, PipelineRun


@dataclass(frozen=True)
class RunOptions:
    """Options of ``go-rl run``."""

    stages: Annotated[tyro.conf.Positional[str], tyro.conf.arg(metavar="FOLDER")]
    """A folder that go-rl export wrote."""
    check: bool = False
    """Compare every output with that of the whole model, and measure the whole model in one process
    with all cores; exit code 1 where an output differs by more than --tolerance."""
    tolerance: float | None = None
    """With --check: largest relative difference, of numbers of at least a thousandth of the largest
    in the output (a tenth in half precision). Default: 1e-4, but 0.02 where the output or a tensor
    between stages is float16, and 0.16 where one is bfloat16."""
    audit: bool = False
    """Ask onnxruntime which operators it ran in each stage, and hold that against the plan; exit
    code 1 where one ran elsewhere, by another provider, not at all or twice. The optimised models
    take the room of the weights in the folder for temporary files meanwhile."""
    model: str | None = None
    """With --check: the whole model. Default: where it was when the stages were written."""
    inputs: Annotated[str | None, tyro.conf.arg(metavar="FILE.npz")] = None
    """Arrays by name of the model's input. Default: random numbers."""
    dim: Dims = ()
    """Size of a dimension that the model leaves open, such as batch=8; may be repeated. Default:
    those of the plan."""
    config: PipelineConfig = field(default_factory=PipelineConfig)
    record: Annotated[str | None, tyro.conf.arg(metavar="FILE")] = None
    """Append the measured seconds to a file, of which go-rl optimize --cost stages:FILE prices the
    model's operators anew."""
    json: bool = False
    """Print one JSON document and nothing else."""

    def __post_init__(self) -> None:
        check_ranges(self, "run", ExecutionError, tolerance=NOT_NEGATIVE)
        if self.tolerance is not None and not self.check:
            raise ExecutionError("--tolerance is of what --check compares; add --check")
        if self.model is not None and not self.check:
            raise ExecutionError("--model is the whole model that --check runs; add --check")


def run(config: RunOptions) -> int:
    """Run the command; returns the exit code."""
    from go_rl.api.plans.stages import run_stages

    if config.record is not None:
        check_file(Path(config.record), "--record")
    with working(f"running {config.stages}"):
        found = run_stages(
            config.stages, inputs=config.inputs, dims=sizes_of(config.dim), check=config.check,
            audit=config.audit, model=config.model, config=config.config, record=config.record,
        )  # fmt: skip
    if config.json:
        print_json(found.to_json(config.tolerance))
    else:
        _print(found, config.tolerance)
    is_rejected = found.accepted(config.tolerance) is False
    return REJECTED if is_rejected or (found.audit and found.audit.differences) else OK


def _print(found: PipelineRun, tolerance: float | None) -> None:
    heads = ("stage", "device", "core", "operators", "busy, ms", "sending, ms", "waiting, ms",
             "predicted, ms")  # fmt: skip
    cells = [
        (
            str(each.stage), str(each.device), str(each.core), f"{each.nodes:,}",
            *(f"{1e3 * seconds:.4g}" for seconds in (
                each.busy_seconds, each.sending_seconds, each.waiting_seconds
            )),
            "" if each.predicted_seconds is None else f"{1e3 * each.predicted_seconds:.4g}",
        )
        for each in found.stages
    ]  # fmt: skip
    out = console()
    print_table(out, TextTable("Stages, a sample", heads, cells))
    for each in found.outputs or ():
        print_line(out, f"output {each.output}: off by {each.max_absolute:.3g}, relative "
                   f"{each.max_relative:.3g}")  # fmt: skip
    said = f"{found.throughput:.4g} samples/s"
    if found.whole_throughput is not None:
        said += f"; the whole model in one process with all cores {found.whole_throughput:.4g}"
    if found.predicted_throughput:
        said += f"; predicted by the plan, on its hardware, {found.predicted_throughput:.4g}"
    verdict = _verdict(found, tolerance)
    for line in (said, *found.notes, *_audit_lines(found.audit), *verdict):
        print_line(out, message_line(line))


def _verdict(found: PipelineRun, tolerance: float | None) -> Iterator[str]:
    """Yield whether the outputs agree with the whole model's, where that was run."""
    outputs = found.outputs
    if outputs is None:
        return
    wrong = [each for each in outputs if not each.accepted(tolerance)]
    if not wrong:
        limits = ", ".join(f"{each:g}" for each in sorted({o.limit(tolerance) for o in outputs}))
        yield f"accepted: {counted(len(outputs), 'output')} within --tolerance {limits}"
    for each in wrong:
        yield (f"rejected: output {each.output} is off by {each.max_relative:.3g}, more than "
               f"--tolerance {each.limit(tolerance):g}")  # fmt: skip


def _audit_lines(audit: PipelineAudit | None) -> Iterator[str]:
    """Yield what ran in each stage, and what ran elsewhere."""
    for each in () if audit is None else audit.stages:
        parts = {
            "ran": each.alone, "ran in joined kernels": tuple(each.joined),
            "computed when loaded": each.folded, "left out": each.removed,
        }  # fmt: skip
        counts = "; ".join(f"{len(names)} {what}: {listed(names)}"
                           for what, names in parts.items() if names)  # fmt: skip
        cores, providers = ", ".join(map(str, each.cores)), ", ".join(each.providers)
        where = f"stage {each.stage}, process {each.process}, core {cores}, {providers}"
        yield f"audit: {where}: {counts}"
    if audit is not None:
        yield from (f"audit: {each}" for each in audit.differences)
        if not audit.differences:
            where, but = "the plan puts it", ""
            if audit.moved:
                where = "its stage has it"
                but = (
                    f"; {listed(audit.moved)} stayed with what they quantise, where the plan has "
                    "another device"
                )
            yield f"audit: every operator ran where {where}, once a sample{but}"
