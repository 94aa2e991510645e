"""``go-rl check --ran``: what a session of onnxruntime ran where, held against a plan."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated

import tyro

from go_rl.cli.console import console, print_json, print_line, working
from go_rl.cli.exit_codes import OK, REJECTED
from go_rl.cli.model_arguments import ModelArguments, as_planned, read
from go_rl.core import ExecutionError, Plan
from go_rl.core.printable import listed, message_line

if TYPE_CHECKING:
    from go_rl.api.plans.audit import SessionAudit


@dataclass(frozen=True)
class CheckRan:
    """Options of ``go-rl check --ran``."""

    plan: Annotated[tyro.conf.Positional[str], tyro.conf.arg(metavar="PLAN")]
    """A plan.json."""
    source: ModelArguments
    ran: Annotated[str, tyro.conf.arg(metavar="PROFILE.json")]
    """Profile of the session, which SessionOptions.enable_profiling asks for."""
    optimised: Annotated[str | None, tyro.conf.arg(metavar="FILE.onnx")] = None
    """Model that the session wrote to SessionOptions.optimized_model_filepath. Default: none, so
    that operators which onnxruntime joins are not seen."""
    provider: Annotated[
        tuple[str, ...], tyro.conf.UseAppendAction, tyro.conf.arg(metavar="DEVICE=NAME")
    ] = ()
    """Execution provider of a device, such as 0=CUDA; may be repeated. Default: a CPU is the CPU's,
    any other device any other provider."""
    json: bool = False
    """Print one JSON document and nothing else."""


def run(config: CheckRan) -> int:
    """Run the command; returns the exit code."""
    from go_rl.api.plans.audit import audit_session

    plan = Plan.load(config.plan)
    reading = as_planned(config.source, plan, config.plan)
    with working(f"reading {config.source.model}"), reading as source:
        found = audit_session(
            plan, source.model, config.ran, optimised=config.optimised,
            providers=dict(map(_provider, config.provider)), graph=read(source),
        )  # fmt: skip
    if config.json:
        print_json(found.to_json())
    else:
        for line in _lines(found):
            print_line(console(), message_line(line))
    return REJECTED if found.differences else OK


def _provider(word: str) -> tuple[int, str]:
    device, equals, name = word.partition("=")
    if not equals or not device.isdecimal():
        raise ExecutionError(f"--provider must be DEVICE=NAME, such as 0=CUDA, not {word!r}")
    return int(device), name


def _lines(found: SessionAudit) -> Iterator[str]:
    yield "as planned" if not found.differences else "not as planned"
    yield from found.differences
    yield from (f"{count} operators ran on {name}" for name, count in found.providers.items())
    joined = sum(map(len, found.joined.values()))
    if joined:
        yield f"{joined} of them in {len(found.joined)} joined kernels"
    if found.folded:
        yield f"{len(found.folded)} computed when loaded: {listed(found.folded)}"
    if found.unseen:
        yield (
            f"{len(found.unseen)} not seen, since onnxruntime joined or folded them (--optimised "
            f"tells): {listed(found.unseen)}"
        )
    yield from found.notes
