"""``go-rl tune programs``: a network's operators, tuned through TVM on this machine."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import tyro

from go_rl.cli.console import print_json
from go_rl.cli.exit_codes import OK
from go_rl.cli.model_arguments import Dims, Positions, Shapes, positions_of, shapes_of, sizes_of
from go_rl.cli.stopping import noting_the_signal
from go_rl.cli.tuning_view import Ending, say_ending, tuning_folder, tuning_view
from go_rl.tuning.config import TuneProgramsConfig

if TYPE_CHECKING:
    from go_rl.api.tune import TunedNetwork
    from go_rl.report.text_table import TextTable


NAMED = 3
"""Operators that a sentence names."""


@dataclass(frozen=True)
class TunePrograms:
    """Options of ``go-rl tune programs``."""

    model: Annotated[tyro.conf.Positional[str], tyro.conf.arg(metavar="MODEL")]
    """A float32 network: a file (ONNX with its weights, HLO text, StableHLO), module:function for
    a JAX function, or zoo:NAME (go-rl zoo list). Weights without numbers get random ones."""
    dim: Dims = ()
    """Size of a symbolic dimension, such as batch=1; may be repeated."""
    input: Shapes = ()
    """Shape of an input of an ONNX model, such as x=1x224x224x3; may be repeated."""
    weight_args: Positions = None
    """Positions of the arguments of a JAX function (parameters of HLO) that are weights. Default:
    argument 0, if it is a pytree of several arrays and there are others."""
    tune: TuneProgramsConfig = field(default_factory=TuneProgramsConfig)
    """Operators to tune, schedulers, tuners and minutes."""
    out: Annotated[str | None, tyro.conf.arg(metavar="DIR")] = None
    """Folder of everything that is written; a run that was stopped there goes on. Default:
    out/tune-MODEL."""
    records: Annotated[str | None, tyro.conf.arg(metavar="DIR|FILE|URL")] = None
    """Store of trials, which several runs may share: a folder, an SQLite file or a database URL.
    Default: that of --out."""
    json: bool = False
    """Print one JSON document, the summary, and nothing else."""

    def __post_init__(self) -> None:
        # Malformed options are refused before anything is read.
        _ = sizes_of(self.dim), shapes_of(self.input), positions_of(self.weight_args)

    @property
    def words(self) -> list[str]:
        """The model as the user named it, with the options that say how it is read."""
        repeated = (("--dim", self.dim), ("--input", self.input))
        found = [word for flag, given in repeated for each in given for word in (flag, each)]
        if self.weight_args is not None:
            found += ["--weight-args", self.weight_args]
        return [self.model, *found]


def run(config: TunePrograms) -> int:
    """Run the command; returns the exit code."""
    folder = tuning_folder(config.out, _short(config.model))
    from go_rl.api.tune import ModelOptions, summary, tune_programs

    options = ModelOptions.of(
        sizes_of(config.dim),
        inputs=shapes_of(config.input),
        weights=positions_of(config.weight_args),
    )
    with tuning_view(config.json) as view, noting_the_signal() as stop:
        tuned = tune_programs(
            config.model, folder, config.tune, options=options, records=config.records,
            watch=view.watch, report=view.report,
        )  # fmt: skip
    if config.json:
        print_json(summary(tuned, config.tune))
        return stop.code or OK
    sentences = [
        f"largest relative error of the module's results: {tuned.max_relative_error:.2g}",
        f"{minutes_sentence(tuned.run_minutes, tuned.minutes, tuned.resumed_trials)}; "
        f"{tuned.trials:,} trials, {tuned.failed_trials:,} of them without a time, "
        f"{tuned.resumed_trials:,} known from before",
    ]
    tables = [*([_table(tuned)] if tuned.operators else []), _networks(tuned)]
    notes, model = [*_untuned(tuned), *tuned.notes], config.words
    say_ending(Ending(tables, notes, sentences, "programs", model, config.tune, folder))
    return stop.code or OK


def minutes_sentence(run: float, tuning: float, resumed: int) -> str:
    """Return how long a run took, and how much of it was tuning; those of a run with trials that
    are known from before, ``resumed``, count earlier runs."""
    if resumed:
        return f"{run:.2f} minutes this run; {tuning:.2f} of tuning in all runs of the folder"
    return f"{run:.2f} minutes in all, {tuning:.2f} of them tuning"


def _short(model: str) -> str:
    """The name of a model in that of a folder."""
    return Path(model.rpartition(":")[2]).stem or "model"


def _untuned(tuned: TunedNetwork) -> list[str]:
    """A sentence for each reason why operators are left untuned."""
    found = []
    for reason, operators in tuned.untuned_reasons.items():
        names = ", ".join(each.name for each in operators[:NAMED])
        more = f" and {len(operators) - NAMED} more" if len(operators) > NAMED else ""
        found.append(f"Left untuned, {reason}: {names}{more}")
    return found


def _networks(tuned: TunedNetwork) -> TextTable:
    """The whole network, here and in other compilers."""
    from go_rl.core.unit_text import unit_for
    from go_rl.report.text_table import TextTable

    scale, unit = unit_for(1e-3 * tuned.latency_ms)
    rows = [("TVM without schedules", tuned.untuned_ms), ("TVM, the module", tuned.latency_ms)]
    rows += [(each.name, each.latency_ms) for each in tuned.rivals]
    heads = ("whole network", f"time [{unit}]", "speed beside the module's")
    cells = [
        (name, f"{scale * 1e-3 * ms:.4g}", f"{tuned.latency_ms / ms:.2f}") for name, ms in rows
    ]
    return TextTable("", heads, cells)


def _table(tuned: TunedNetwork) -> TextTable:
    from go_rl.core.unit_text import unit_for
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
    return TextTable(title, heads, cells)
