"""``go-rl tune kernels``: the fastest fusion and flags of a model that measuring finds."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Annotated

import tyro

from go_rl.cli.console import print_json
from go_rl.cli.exit_codes import OK
from go_rl.cli.stopping import noting_the_signal
from go_rl.cli.tuning_view import Ending, say_ending, tuning_folder, tuning_view
from go_rl.core.printable import counted
from go_rl.tuning.config import TuneConfig

if TYPE_CHECKING:
    from go_rl.api.tune import Tuned
    from go_rl.report.text_table import TextTable


@dataclass(frozen=True)
class TuneKernels:
    """Options of ``go-rl tune kernels``."""

    model: Annotated[tyro.conf.Positional[str], tyro.conf.arg(metavar="MODEL")]
    """zoo:NAME (go-rl zoo list), or module:function for a JAX function, which runs that
    module's code."""
    tune: TuneConfig = field(default_factory=TuneConfig)
    """Search space, minutes and guide."""
    out: Annotated[str | None, tyro.conf.arg(metavar="DIR")] = None
    """Folder of everything that is written; a run that was stopped there goes on. Default:
    out/tune-MODEL."""
    records: Annotated[str | None, tyro.conf.arg(metavar="DIR|FILE|URL")] = None
    """Store of measurements, which several runs may share: a folder, an SQLite file or a database
    URL. What it knows is not measured again, but takes the time that it took then. Default: that of
    --out."""
    json: bool = False
    """Print one JSON document, the summary, and nothing else."""


def run(config: TuneKernels) -> int:
    """Run the command; returns the exit code."""
    folder = tuning_folder(config.out, config.model.removeprefix("zoo:"))
    from go_rl.api.tune import summary, tune_kernels

    with tuning_view(config.json) as view, noting_the_signal() as stop:
        view.report("reading the model")
        tuned = tune_kernels(
            config.model, folder, config.tune, records=config.records, watch=view.watch,
            report=view.report,
        )  # fmt: skip
    if config.json:
        print_json(summary(tuned, config.tune))
        return stop.code or OK
    sentences = [
        f"{counted(tuned.candidates, 'fusion')} in {tuned.minutes:.2f} minutes; "
        f"{counted(tuned.measured, 'kernel')} measured, {tuned.replayed:,} known from before"
    ]
    model, table = [config.model], _table(tuned)
    say_ending(Ending((table,), tuned.notes, sentences, "kernels", model, config.tune, folder))
    return stop.code or OK


def _table(tuned: Tuned) -> TextTable:
    from go_rl.core.unit_text import unit_for
    from go_rl.report.text_table import TextTable

    scale, unit = unit_for(tuned.kept_seconds)
    title = f"{tuned.model} on {tuned.target}, guide {tuned.guide} (time: lower is better)"
    flagged = sum(part.hash in tuned.settings for part in tuned.fusion.parts)
    heads = ("", f"sum of kernels [{unit}]", "speed-up", "kernels", "with flags")
    cells = [
        ("XLA's default", f"{scale * tuned.default_seconds:.4g}", "1.000", "", ""),
        (
            f"kept: {tuned.kept}",
            f"{scale * tuned.kept_seconds:.4g}",
            f"{tuned.speedup:.3f}",
            f"{len(tuned.fusion.parts):,}",
            f"{flagged:,}",
        ),
    ]
    return TextTable(title, heads, cells)
