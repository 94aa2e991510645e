"""``go-rl tune kernels``: the fastest fusion and flags of a model that measuring finds."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import tyro

from go_rl.cli.console import console, print_line, print_table
from go_rl.cli.exit_codes import OK
from go_rl.cli.folders import check_folder
from go_rl.cli.tuning_view import say_longer, tuning_view
from go_rl.tuning.config import TuneConfig

if TYPE_CHECKING:
    from go_rl.api.tune import Tuned


@dataclass(frozen=True)
class TuneKernels:
    """Options of ``go-rl tune kernels``."""

    model: Annotated[tyro.conf.Positional[str], tyro.conf.arg(metavar="MODEL")]
    """zoo:NAME (go-rl zoo list), or module:function for a JAX function."""
    tune: TuneConfig = field(default_factory=TuneConfig)
    """What is tuned, for how long, and who says what is worth measuring."""
    out: Annotated[str | None, tyro.conf.arg(metavar="DIR")] = None
    """Folder of tuned.json, the curve and the records; what these know is not measured again.
    Default: out/tune-MODEL."""
    records: Annotated[str | None, tyro.conf.arg(metavar="DIR")] = None
    """Folder of the records, which several runs may share; default: that of --out."""


def run(config: TuneKernels) -> int:
    """Run the command; returns the exit code."""
    folder = Path(config.out or Path("out") / f"tune-{_file_name(config.model)}")
    check_folder(folder)
    if config.records:
        check_folder(Path(config.records), "--records")
    from go_rl.api.tune import tune_kernels

    with tuning_view() as view:
        view.report("reading the model")
        tuned = tune_kernels(
            config.model, folder, config.tune, records=config.records, watch=view.watch,
            report=view.report,
        )  # fmt: skip
    _print(tuned)
    say_longer("kernels", [config.model], config.tune.minutes, folder)
    return OK


def _file_name(model: str) -> str:
    return "".join(c if c.isalnum() or c in "-_." else "-" for c in model.removeprefix("zoo:"))


def _print(tuned: Tuned) -> None:
    from go_rl.report.tables import unit_for
    from go_rl.report.text_table import TextTable

    scale, unit = unit_for(tuned.kept_seconds)
    title = f"{tuned.model} on {tuned.target}, guide {tuned.guide} (time: lower is better)"
    flagged = sum(part.hash in tuned.settings for part in tuned.fusion.parts)
    heads = ("", f"sum of kernels [{unit}]", "speed-up", "kernels", "with flags")
    cells = [
        ("XLA's default", f"{scale * tuned.baseline_seconds:.4g}", "1.000", "", ""),
        (
            f"kept: {tuned.kept}",
            f"{scale * tuned.kept_seconds:.4g}",
            f"{tuned.speedup:.3f}",
            f"{len(tuned.fusion.parts):,}",
            f"{flagged:,}",
        ),
    ]
    out = console()
    print_table(out, TextTable(title, heads, cells))
    for note in tuned.notes:
        print_line(out, f"{note}.")
    print_line(
        out,
        f"{tuned.candidates:,} fusions in {tuned.minutes:.2f} minutes; {tuned.measured:,} kernels "
        f"measured, {tuned.replayed:,} known from before",
    )
