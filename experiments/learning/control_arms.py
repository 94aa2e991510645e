"""What the shipped policies are worth beside their control arms and the classical methods.

Run: ``python -m experiments.learning.control_arms [--samples 20 200] [--seconds 1] [--seeds 5]``.
``partition-1.1`` draws orders for test graphs of the zoo, ``dispatch-2.5`` places rows of GO's
table with two devices, and also decides all: graphs of families that they never saw. Finished runs
are kept in ``results/control_arms``.
"""

from __future__ import annotations

from dataclasses import dataclass

from experiments.experiment import Experiment, say
from experiments.placement.go_rows import ROWS
from go_rl.compare.benchmark.config import EvaluateConfig
from go_rl.compare.benchmark.evaluate import Comparison
from go_rl.compare.controls.control_table import ControlRow, evaluate_controls
from go_rl.core.files.whole_file import write_text
from go_rl.report.control_tables import control_csv, control_markdown

RINGS = ("bert-medium", "convdraw", "dlrm-rm2", "gnmt-2-layers", "nasnet-mobile", "t5-small")
"""Test graphs, each of another family."""
GO = ("RNNLM 2 layers", "GNMT 2 layers", "Transformer-XL 2 layers", "Inception-v3 b32",
      "Inception-v3 b64", "WaveNet 2x18")  # fmt: skip
"""Rows of GO's table with two devices."""


@dataclass(frozen=True)
class ControlArms(Experiment):
    """Options of this experiment."""

    rings: tuple[str, ...] = RINGS
    """Graphs of the zoo for 36 chips."""
    rows: tuple[str, ...] = GO
    """Rows of GO's table."""
    weights: tuple[str, ...] = ("partition-1.1", "dispatch-2.5")
    """Weights files."""
    samples: tuple[int, ...] = (20, 200)
    """Plans of each run, one comparison after the other."""
    seconds: float | None = 1.0
    """Seconds of each run of a further comparison; None: not run."""
    methods: tuple[str, ...] = ("policy",)
    """Methods with a policy; on devices only those that work there."""
    seeds: int = 5
    """Runs of each method on each problem; fresh weights of an arm follow from the seed."""

    def run(self) -> None:
        """Make the missing runs, then the page."""
        rows: dict[str, list[ControlRow]] = {}
        comparisons: list[Comparison] = []
        for weights, chosen in configs(self).items():
            rows[weights] = []
            for config in chosen:
                found = evaluate_controls(config, self.stem, say)
                rows[weights] += found.rows
                comparisons += found.comparisons
        self.write_page(page(rows, comparisons, self))
        every = [row for some in rows.values() for row in some]
        write_text(self.path(".csv"), control_csv(every))


def configs(options: ControlArms) -> dict[str, list[EvaluateConfig]]:
    """Return the comparisons of each weights file."""
    shared = tuple(name for name in options.methods if not name.endswith("-placement"))
    classical = ("expert", "heft", "annealing", "random")
    rings = {
        "graphs": tuple(f"zoo:{name}" for name in options.rings),
        "memory": False,
        "methods": (*options.methods, "linear-dp", "annealing", "random"),
    }
    devices = {
        "graphs": tuple(f"zoo:{ROWS[row][0]}" for row in options.rows),
        "hardware": tuple(dict.fromkeys(f"p100x{ROWS[row][1]}" for row in options.rows)),
        "decide": "placement",
        "methods": (*shared, *classical),
    }
    budgets = [(samples, None) for samples in options.samples]
    budgets += [(None, options.seconds)] if options.seconds is not None else []
    joint = {
        **devices,
        "decide": "placement,schedule,fusion",
        "methods": (*shared, "composed", *classical),
    }
    chosen = (
        ("partition-1.1", rings),
        ("dispatch-2.5", {**devices, "weights": "dispatch-2.5"}),
        ("dispatch-2.5", {**joint, "weights": "dispatch-2.5"}),
    )
    found: dict[str, list[EvaluateConfig]] = {}
    for weights, fields in chosen:
        if weights in options.weights:
            found.setdefault(weights, []).extend(
                EvaluateConfig(
                    **fields, cost="analytical", controls=True, samples=samples, seconds=seconds,
                    seeds=options.seeds,
                )
                for samples, seconds in budgets
            )  # fmt: skip
    return found


def page(
    rows: dict[str, list[ControlRow]], comparisons: list[Comparison], options: ControlArms
) -> str:
    """Return the page."""
    runs = [run for comparison in comparisons for run in comparison.runs]
    hours = sum(run.seconds for run in runs) / 3600
    text = (
        "# The shipped policies beside their control arms\n\n"
        f"{len(runs):,} runs, {options.seeds} seeds, {hours:.2f} hours on two shared cores. "
        "Under *untrained* and *random-encoder* each seed has weights of its own. Decoders of "
        "untrained rings and dispatchers give zeros, so there *untrained* and *zero-output* are "
        "one. *linear-dp* tries 40 orders at most, *composed* some ten to thirty plans, *expert* "
        "one and *heft* two. The cores were shared with other programs, up to ten at a time: rows "
        "at equal seconds are rough.\n\n"
    )
    for weights, some in rows.items():
        text += f"# {weights}\n\n{control_markdown(some)}\n{_lost(weights, some)}\n"
    return text


def _lost(weights: str, rows: list[ControlRow]) -> str:
    """A sentence that names what the weights do not beat."""
    if not any(row.verdict for row in rows):
        return f"**No interval: {weights} ran on graphs of too few families.**\n"
    lost = [f"{row.method} ({row.budget})" for row in rows if row.verdict in ("level", "method")]
    if not lost:
        return f"**{weights} is ahead of all of these.**\n"
    return f"**{weights} is not ahead of: {', '.join(lost)}.**\n"


if __name__ == "__main__":
    ControlArms.main()
