"""The page and the figure of `mcm_hardware`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated

import numpy as np
from matplotlib.figure import Figure
from scipy.stats import pearsonr, spearmanr

from experiments.experiment import Experiment
from experiments.page_text import Column
from experiments.partition.random_partitions import CUTS, UNIFORM
from experiments.rows import rows_table
from experiments.statistics import geometric_mean
from go_rl.report.figures import new_figure
from go_rl.report.file_tables import markdown_table

PUBLISHED_CORRELATION, PUBLISHED_FAILURES = 0.91, 0.135


@dataclass(frozen=True)
class Measured:
    """One random plan; the first two fields are its key."""

    chips: int
    plan: int
    origin: str
    analytical_ms: float
    measured_ms: float
    """Wall time of the slowest stage."""
    measured_cpu_ms: float
    """CPU time of the slowest stage: its time without other programs."""
    all_stages_ms: float
    """Sum over the stages."""
    largest_mb: float
    """Compiled memory of the largest stage."""
    cpu_seconds: float
    """Seconds of measuring it, compilation included."""


@dataclass(frozen=True)
class Failures:
    """One policy under one limit; the first four fields are its key."""

    chips: int
    decoder: str
    rule: Annotated[str, Column("limit")]
    """How the limit was chosen."""
    policy: str
    limit_mb: Annotated[float, Column("MB", ".1f")]
    """Memory limit of a compiled stage, 1e6 bytes."""
    draws: Annotated[int, Column("drawn")]
    failed: Annotated[float, Column("", ".1%")]
    """Share of drawn plans that need too much memory somewhere."""
    median_mb: Annotated[float, Column("median MB", ".1f")]
    """Of the largest compiled stage of each drawn plan."""
    best_ms: Annotated[float, Column("best that fits [ms]", ".1f")]
    """Smallest analytical T_max of the drawn plans that fit; inf: none fits."""
    median_ms: Annotated[float, Column("median [ms]", ".1f")]
    """Median analytical T_max of all drawn plans."""
    seen_first: Annotated[float, Column("failed in first quarter", ".1%")]
    """Share of failures in the first quarter of the fine-tuning; nan: nothing was learned."""
    seen_last: Annotated[float, Column("in last quarter", ".1%")]
    """In the last quarter."""
    cpu_seconds: float


@dataclass(frozen=True)
class Setting:
    """Facts about the run for the page."""

    model: str
    """The model in words."""
    machine: str
    """The CPU in words."""
    memory_megabytes: float
    """Memory limit of a compiled stage."""
    finetune: int
    """Samples of a fine-tuning."""


def write_report(
    experiment: Experiment,
    setting: Setting,
    plans: Sequence[Measured],
    failures: Sequence[Failures],
    simulated: Mapping[int, np.ndarray],
) -> None:
    """Write the page and its figure; ``simulated`` holds [B] analytical seconds by chips."""
    hours = (sum(r.cpu_seconds for r in plans) + sum(r.cpu_seconds for r in failures)) / 3600
    text = [
        "# Analytical against measured T_max",
        "",
        f"{setting.model}; strict rules. {setting.machine}; efficiencies as shipped for `cpu`, "
        f"nothing fitted. {hours:.2f} CPU-hours. "
        f"Published: Pearson {PUBLISHED_CORRELATION} over 2,000 plans on hardware, "
        f"{PUBLISHED_FAILURES:.1%} of zero-shot plans fail.",
        "",
        "Random plans: every fourth is uniform cuts of a random order; the "
        "others are drawn around cuts of random topological orders (`cuts`), from almost uniform "
        "to balanced. The uniform ones form a cloud of their own, so both figures are given. "
        "Measured is CPU time on one thread, which other programs on the machine hardly change; "
        "wall time is given beside it.",
        "",
        markdown_table(
            ["chips", "plans", "priced", "T_max priced [ms], 5 / 50 / 95 %", "measured", "Pearson",
             "Spearman", "Pearson of logs", "Pearson, wall time", "measured / analytical",
             f"more than {setting.memory_megabytes:g} MB compiled"],
            [
                line
                for chips in sorted({r.chips for r in plans})
                for line in _correlations(plans, chips, simulated.get(chips), setting)
            ],
        ),
    ]  # fmt: skip
    if failures:
        text += [
            "",
            "Plans of the policy that fail once compiled: a stage's arguments, temporaries and "
            "outputs must fit the limit. Limit `ring36 chip`: 32 MB at four bytes an element "
            "instead of one; `published share`: where the share of zero-shot plans that fail is "
            "nearest to the published one. First and last quarter: of the "
            f"{setting.finetune} samples of the fine-tuning itself. Decoder `placement`: chips "
            "drawn through SAMPLE; `order`: scores cut into stages by dynamic programming. "
            "Nine chips were picked because there some and not all placements of provisional "
            "weights exceeded 128 MB: the share at 9 is no estimate for other packages.",
            "",
            rows_table(failures, ("cpu_seconds",)),
        ]
    experiment.write_page(text)
    if plans:
        experiment.save_figure(_figure(plans))


def _correlations(
    plans: Sequence[Measured], chips: int, simulated: np.ndarray | None, setting: Setting
) -> list[list[str]]:
    lines = []
    for name, origins in (("all", (UNIFORM, CUTS)), (CUTS, (CUTS,))):
        rows = [r for r in plans if r.chips == chips and r.origin in origins]
        if len(rows) < 3:
            continue
        model = np.array([r.analytical_ms for r in rows])
        real = np.array([r.measured_cpu_ms for r in rows])
        wall = np.array([r.measured_ms for r in rows])
        priced, spread = "", ""
        if simulated is not None and name == "all":
            priced = str(len(simulated))
            spread = " / ".join(f"{1e3 * q:.0f}" for q in np.quantile(simulated, (0.05, 0.5, 0.95)))
        too_large = np.mean([r.largest_mb > setting.memory_megabytes for r in rows])
        lines.append(
            [str(chips), name, priced, spread, str(len(rows)), f"{pearsonr(model, real)[0]:.4f}",
             f"{spearmanr(model, real)[0]:.4f}",
             f"{pearsonr(np.log(model), np.log(real))[0]:.4f}",
             f"{pearsonr(model, wall)[0]:.4f}", f"{geometric_mean(real / model):.3f}",
             f"{too_large:.1%}"]
        )  # fmt: skip
    return lines


def _figure(plans: Sequence[Measured]) -> Figure:
    """Scatter plots, a panel for each hardware; the line is measured = analytical."""
    packages = sorted({r.chips for r in plans})
    figure = new_figure(5.0 * len(packages), 4.6)
    panels = figure.subplots(1, len(packages), squeeze=False)
    for axes, chips in zip(panels[0], packages, strict=True):
        rows = [r for r in plans if r.chips == chips]
        for origin in (CUTS, UNIFORM):
            x = [r.analytical_ms for r in rows if r.origin == origin]
            y = [r.measured_cpu_ms for r in rows if r.origin == origin]
            axes.scatter(x, y, s=14, alpha=0.6, label=origin)
        ends = [min(r.analytical_ms for r in rows), max(r.analytical_ms for r in rows)]
        axes.plot(ends, ends, color="grey", linewidth=1, label="equal")
        axes.set_xscale("log")
        axes.set_yscale("log")
        axes.set_xlabel("analytical T_max [ms]")
        axes.set_ylabel("measured T_max [CPU ms]")
        title = f"{chips} chips, {len(rows)} plans"
        if len(rows) > 2:
            both = [r.analytical_ms for r in rows], [r.measured_cpu_ms for r in rows]
            title += f": Pearson {pearsonr(*both)[0]:.3f}"
        axes.set_title(title)
        axes.legend()
    return figure
