"""Networks compiled by XLA for this machine's processor: predicted against measured.

Run: ``python -m experiments.programs.end_to_end_cpu FOLDER``. A cost model that learned on another
processor is corrected by kernels of other networks (`go_rl.calibrate`), then prices each network's
kernels; the network is also compiled as a whole and timed on one core by the same rule. What is
measured stays in the folder.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import numpy as np
import tyro

from experiments.pages import NOTHING, RESULTS, run_script, write_page
from go_rl.api.this_device import NETWORKS, CalibrateConfig, calibrate, predict_this
from go_rl.core.processor import processor_name
from go_rl.measure.kernels.chosen import ChosenKernel, measure_chosen
from go_rl.measure.kernels.exported import zoo_program
from go_rl.readers.jax.stages import JaxProgram
from go_rl.zoo.models.inventory import zoo_model

NAME = "end_to_end_cpu"


@dataclass(frozen=True)
class Options:
    """Options of this experiment."""

    folder: Annotated[tyro.conf.Positional[str], tyro.conf.arg(metavar="FOLDER")]
    """Calibration, and records of whole networks."""
    networks: tuple[str, ...] = ("resnet34", "bert-small", "t5-small", "mixer-b16-b8",
                                 "whisper-tiny", "hrnet-w18")  # fmt: skip
    """Of the zoo; none of them calibrates."""
    kernels: int = 64
    """Timed to calibrate."""
    minutes: float = 20.0
    """Of calibration, at most."""
    core: int | None = None
    """That measures; by default the last one of this process."""


def main(options: Options) -> None:
    """Make the table."""
    folder = Path(options.folder)
    config = CalibrateConfig(options.minutes, options.kernels, NETWORKS, options.core)
    found = calibrate(folder / "this.npz", config, report=_say)
    programs = {name: zoo_program(zoo_model(name)) for name in options.networks}
    whole = measure_chosen(
        [_whole(name, program) for name, program in programs.items()],
        folder / "whole", config.measure, 3600.0, lambda done, said: print(said, flush=True),
    )  # fmt: skip
    rows, errors = [], []
    for name, program in programs.items():
        guess = predict_this(program.graph, folder / "this.npz")
        seconds = whole.get(f"whole {name}")
        if seconds is None or guess.low_ms is None or guess.high_ms is None:
            rows.append(f"| {name} | {NOTHING} | {guess.latency_ms:.3g} | {NOTHING} | {NOTHING} |")
            continue
        error = guess.latency_ms / (1e3 * seconds) - 1
        errors.append(abs(error))
        bounds = f"{guess.low_ms:.3g} to {guess.high_ms:.3g}"
        rows.append(f"| {name} | {1e3 * seconds:.3g} | {guess.latency_ms:.3g} | {bounds} | "
                    f"{100 * error:+.1f} |")  # fmt: skip
    lines = [
        "# Whole networks on this processor",
        "",
        f"Milliseconds on one core of {processor_name()}, compiled by XLA as a whole, against the",
        f"sum over kernels of a cost model corrected by {found.kernels} kernels of other networks",
        f"(kernels left out are off by {found.error:.1f} % on average). Mean absolute error of",
        f"networks: {100 * np.mean(errors) if errors else float('nan'):.1f} %. Published: 12.4 %.",
        "",
        "| network | measured | predicted | 90 % interval | error % |",
        "|---|---|---|---|---|",
        *rows,
        "",
    ]
    write_page(RESULTS / NAME, "\n".join(lines), __file__)


def _whole(name: str, program: JaxProgram) -> ChosenKernel:
    nodes = np.flatnonzero(~program.graph.is_fed).tolist()
    return ChosenKernel(program, tuple(nodes), f"whole {name}", name)


def _say(done: int, total: int, sentence: str) -> None:
    print(f"{done}/{total} {sentence}", flush=True)


if __name__ == "__main__":
    run_script(main, Options, __doc__)
