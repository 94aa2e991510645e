"""``go-rl tune kernels``: the fastest fusion and flags of a model that measuring finds."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from rich.table import Table

from go_rl.cli.console import console, working
from go_rl.cli.exit_codes import OK
from go_rl.cli.folders import check_folder, make_folder
from go_rl.cli.tune_configuration import Tune

if TYPE_CHECKING:
    from go_rl.tuning.outcome import Tuned


def run_tune(config: Tune) -> int:
    """Run the command; returns the exit code."""
    folder = Path(config.out or Path("out") / f"tune-{_file_name(config.model)}")
    check_folder(folder)
    if config.records:
        check_folder(Path(config.records), "--records")
    from go_rl.report.tuning_curve import save_tuning_curve
    from go_rl.tuning.compilable import load_program
    from go_rl.tuning.guides import guide_of
    from go_rl.tuning.tune_kernels import tune_kernels

    with working("reading the model") as say:
        guide = guide_of(config.tune)
        program = load_program(config.model)
        make_folder(folder)
        records = Path(config.records) if config.records else None
        tuned = tune_kernels(program, folder, config.tune, guide, say, records)
        save_tuning_curve(tuned, folder / "curve")
    _print(tuned)
    console().print(f"written to {folder}", markup=False, soft_wrap=True)
    return OK


def _file_name(model: str) -> str:
    return "".join(c if c.isalnum() or c in "-_." else "-" for c in model.removeprefix("zoo:"))


def _print(tuned: Tuned) -> None:
    from go_rl.report.tables import unit_for

    scale, unit = unit_for(tuned.kept_seconds)
    title = f"{tuned.model} on {tuned.target}, guide {tuned.guide}"
    table = Table(title=title, title_justify="left")
    for i, head in enumerate(("", f"sum of kernels, {unit}", "speed-up", "kernels", "with flags")):
        table.add_column(head, justify="right" if i else "left")
    table.add_row("XLA's default", f"{scale * tuned.baseline_seconds:.4g}", "1.000", "", "")
    flagged = sum(part.hash in tuned.settings for part in tuned.fusion.parts)
    table.add_row(
        f"kept: {tuned.kept}",
        f"{scale * tuned.kept_seconds:.4g}",
        f"{tuned.speedup:.3f}",
        f"{len(tuned.fusion.parts):,}",
        f"{flagged:,}",
    )
    out = console()
    out.print(table)
    for note in tuned.notes:
        out.print(f"{note}.", markup=False, soft_wrap=True)
    out.print(
        f"{tuned.candidates:,} fusions in {tuned.minutes:.2f} minutes; {tuned.measured:,} kernels "
        f"measured, {tuned.replayed:,} known from before",
        markup=False, soft_wrap=True,
    )  # fmt: skip
