"""``go-rl train kernels``: from measured kernels to the weights of a learned cost model."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated

import tyro

from go_rl.api.training.predictors import TrainKernelsConfig
from go_rl.cli.console import console, counting, print_line
from go_rl.cli.exit_codes import OK
from go_rl.cli.folders import check_file
from go_rl.cli.next_command import EXAMPLE_MODEL, say_next
from go_rl.core.hardware.presets import CORE
from go_rl.core.hardware.processor import own_target


@dataclass(frozen=True)
class TrainKernels:
    """Options of ``go-rl train kernels``."""

    source: Annotated[tyro.conf.Positional[str], tyro.conf.arg(metavar="DIR|DATA")]
    """A folder of go-rl measure kernels, or a data set: a file, or the name of one that ships."""
    out: Annotated[tyro.conf.Positional[str], tyro.conf.arg(metavar="OUT.npz")]
    """Weights to be written; the file's name is theirs."""
    data: Annotated[str | None, tyro.conf.arg(metavar="FILE.npz")] = None
    """Data set to write with all measurements of the folder."""
    training: TrainKernelsConfig = field(default_factory=TrainKernelsConfig)


def run(config: TrainKernels) -> int:
    """Run ``go-rl train kernels``; returns the exit code."""
    check_file(Path(config.out), "OUT.npz")
    if config.data is not None:
        check_file(Path(config.data), "--data")
    from go_rl.api.training.predictors import train_kernels

    with counting("training") as report:
        weights = train_kernels(
            config.source, config.out, config.training, data=config.data, report=report
        )
    card, target, out = weights.card, weights.target, console()
    sentence = f"{card['kernels']:,} kernels of {card['models']} models on {target} learned from"
    if held_out := card["judged"]:
        sentence += (
            f"; {held_out['kernels']:,.0f} others predicted within {held_out['mean']:.1f} % on "
            f"average, {held_out['median']:.1f} % in the median"
        )
    print_line(out, f"{sentence}. Weights: {config.out}")
    if target in (CORE.kind, own_target()):
        words = ("--hardware", f"{target}-ring4", "--cost", f"learned:{config.out}")
        say_next(out, "optimize", EXAMPLE_MODEL, *words)
    else:  # which needs a hardware file of one's own; a preset is a start for it
        say_next(out, "hardware", "show", f"{CORE.kind}-ring4", "--json")
    return OK
