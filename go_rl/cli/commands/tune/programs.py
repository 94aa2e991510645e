"""``go-rl tune programs``: a network's operators, tuned through TVM on this machine."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import tyro

from go_rl.cli.console import console, print_json, print_line, print_table
from go_rl.cli.exit_codes import OK
from go_rl.cli.folders import check_folder
from go_rl.cli.model_arguments import Dims, sizes_of
from go_rl.cli.tuning_view import say_longer, tuning_view
from go_rl.tuning.config import TuneProgramsConfig

if TYPE_CHECKING:
    from go_rl.api.tune import TunedNetwork


@dataclass(frozen=True)
class TunePrograms:
    """Options of ``go-rl tune programs``."""

    model: Annotated[tyro.conf.Positional[str], tyro.conf.arg(metavar="MODEL")]
    """An ONNX file with its weights, in float32."""
    dim: Dims = ()
    """Size of a symbolic dimension, such as batch=1; may be repeated."""
    tune: TuneProgramsConfig = field(default_factory=TuneProgramsConfig)
    """Who tunes what, for how long."""
    out: Annotated[str | None, tyro.conf.arg(metavar="DIR")] = None
    """Folder of everything that is written; a run that was stopped there goes on. Default:
    out/tune-MODEL."""
    records: Annotated[str | None, tyro.conf.arg(metavar="FILE|URL")] = None
    """Store of trials, which several runs may share: an SQLite file or a database URL. Default:
    that of --out."""
    json: bool = False
    """Print one JSON document, the summary, and nothing else."""

    def __post_init__(self) -> None:
        _ = self.dims

    @property
    def dims(self) -> dict[str, int]:
        """The sizes by name."""
        return sizes_of(self.dim)


def run(config: TunePrograms) -> int:
    """Run the command; returns the exit code."""
    folder = Path(config.out or Path("out") / f"tune-{Path(config.model).stem}")
    check_folder(folder)
    from go_rl.api.tune import summary, tune_programs

    with tuning_view(config.json) as view:
        tuned = tune_programs(
            config.model, folder, config.tune, dims=config.dims, records=config.records,
            watch=view.watch, report=view.report,
        )  # fmt: skip
    if config.json:
        print_json(summary(tuned, config.tune))
        return OK
    _print(tuned)
    sizes = [word for size in config.dim for word in ("--dim", size)]
    say_longer("programs", [config.model, *sizes], config.tune.minutes, folder)
    return OK


def _print(tuned: TunedNetwork) -> None:
    from go_rl.report.tables import unit_for
    from go_rl.report.text_table import TextTable

    scale, unit = unit_for(max(each.seconds * each.operator.repeats for each in tuned.operators))
    title = f"{tuned.model} on {tuned.target}, {tuned.scheduler} over {tuned.tuner}"
    heads = ("operator", "uses", f"untuned [{unit}]", f"tuned [{unit}]", "trials", "share of time")
    cells = [
        (
            each.operator.name, str(each.operator.repeats),
            f"{scale * each.operator.repeats * each.untuned_seconds:.4g}",
            f"{scale * each.operator.repeats * each.seconds:.4g}", f"{each.trials:,}",
            f"{each.share:.0%}",
        )
        for each in tuned.operators
    ]  # fmt: skip
    out = console()
    print_table(out, TextTable(title, heads, cells))
    for note in tuned.notes:
        print_line(out, f"{note}.")
    print_line(
        out,
        f"whole network: {tuned.untuned_ms:.4g} ms untuned, {tuned.latency_ms:.4g} ms tuned "
        f"({tuned.speedup:.2f} times as fast); largest relative error "
        f"{tuned.max_relative_error:.2g}",
    )
    print_line(
        out,
        f"{tuned.trials:,} trials in {tuned.minutes:.2f} minutes, {tuned.failed_trials:,} of them "
        f"without a time, {tuned.resumed_trials:,} known from before",
    )
