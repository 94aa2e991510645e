"""GO's own form, all units at once, learning alone on each row of GO's table, with its controls.

Run: ``python -m experiments placement.go_own_form [--rows NAME ...] [--arms NAME ...]
[--samples 2000] [--seeds 1] [--colocate gradients] [--decide placement+schedule+fusion]``.
*learned* is a policy ``nodes`` (docs/policy.md) that starts untrained and learns on the row alone;
*without carrying* has no graph-level numbers and carries no plans over; *untrained* draws from the
same first weights and learns nothing; *blind* sees no edge. The recipe was chosen on training
problems of the zoo. Runs of other numbers of samples have a table of their own.

GO as published, with arms of its own (`go_published`), has sections at the end of the page; its
weights come from `make long`, which runs it with ``--colocate gradients``.

*zero-shot* and *fine-tuned* take ``build/go_own_form/weights.npz``::

    go-rl train policy build/go_own_form --network nodes --decide placement --policy.hidden 32
        --policy.sage-layers 2 --policy.attention-layers 0 --policy.iterations 3
        --further efficientnet-b0-training gcn-16-layers-training
        gpt2-small-training graph-simulator-10-training neural-ode-8-training
        wide-and-deep-training resnet50-b8-training transformer-base-training
        wav2vec2-base-training whisper-tiny-training xception-training --further-share 1
        --max-nodes 3700 --updates 150 --problems 2 --samples 32 --chained 3 --top 0.3
        --ppo.learning-rate 1e-3 --ppo.epochs 2 --ppo.entropy 1e-3 --ppo.decay-updates 150
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial

from experiments.experiment import ROOT, Experiment
from experiments.page_text import NOTHING, cell, grid_table, markdown_table
from experiments.placement.go_published import EQUAL_SECONDS, Run, published_arm, published_sections
from experiments.placement.go_rows import RowOptions, best_after, known_rows, row_problem, searched
from experiments.placement.hdp_reproduction import Run as HdpRun
from experiments.rows import read_rows
from experiments.statistics import geometric_mean, mean_cell
from go_rl.core import Budget, Objective, Optimizer
from go_rl.graphs.cutting.colocation import Colocation
from go_rl.objectives.methods import MakespanAnnealing, MakespanExpert
from go_rl.policy.agent import Agent, new_agent
from go_rl.policy.config import NodesPolicyConfig
from go_rl.policy.learn.config import FINE_TUNING
from go_rl.policy.learn.fine_tune import FineTuned
from go_rl.policy.policy_search import PolicySearch
from go_rl.policy.weights import load_weights

WEIGHTS = ROOT / "build" / "go_own_form" / "weights.npz"
POLICY = NodesPolicyConfig(hidden=32, sage_layers=2, attention_layers=0, iterations=3, directions=8)
"""Three iterations as in GO; the rest small, so that pricing takes most of the time."""
BARE = replace(POLICY, directions=0, carry=False)
LEARNING = FINE_TUNING["nodes"]
FROZEN = replace(LEARNING, ppo=replace(LEARNING.ppo, learning_rate=1e-30, epochs=1))
"""Too small a step to change any weight."""
KEY = ("row", "arm", "seed", "samples", "colocate", "decide")
"""Fields that tell a run."""
AFTER = (200, 1000)
"""Samples after which plans are compared, beside the end."""


def _pretrained() -> Agent:
    if not WEIGHTS.exists():
        raise SystemExit(f"{WEIGHTS} is missing: train it first, see the top of this script")
    return load_weights(WEIGHTS, Objective.MAKESPAN).agent


def _learner(
    policy: NodesPolicyConfig, seed: int, frozen: bool = False, blind: bool = False
) -> FineTuned:
    agent = replace(new_agent(policy, seed), blind=blind)
    return FineTuned(agent, config=FROZEN if frozen else LEARNING, name="nodes")


ARMS: dict[str, Callable[[int], Optimizer]] = {
    "learned": lambda seed: _learner(POLICY, seed),
    "without carrying": lambda seed: _learner(BARE, seed),
    "untrained": lambda seed: _learner(POLICY, seed, frozen=True),
    "blind": lambda seed: _learner(POLICY, seed, blind=True),
    "annealing": lambda seed: MakespanAnnealing(),
    "zero-shot": lambda seed: PolicySearch(_pretrained(), name="zero-shot"),
    "fine-tuned": lambda seed: FineTuned(_pretrained(), config=LEARNING, name="fine-tuned"),
}
"""By seed."""


@dataclass(frozen=True)
class GoOwnForm(RowOptions, Experiment):
    """Options of this experiment."""

    arms: tuple[str, ...] = ("learned", "untrained", "blind", "annealing")
    """Arms to run; the page shows all that were ever run."""
    decide: str = "placement"
    """Decisions, with + between."""
    shown: int = 2000
    """Number of samples of the page's main tables."""

    def run(self) -> None:
        """Make the missing runs, then the page."""
        table = self.kept_runs(Run)
        keys = ((*key, self.decide) for key in self.keys(self.arms))
        table.fill(keys, partial(_run, table.rows), KEY)
        hdp = read_rows(HdpRun, self.stem.with_name("hdp_reproduction") / "runs.jsonl")
        text = page([r for r in table.rows if r.colocate == "graph"], self.shown)
        self.write_page(text + published_sections(table.rows, hdp))


def _run(
    known: Sequence[Run], row: str, arm: str, seed: int, samples: int, colocate: Colocation,
    decide: str,
) -> Run:  # fmt: skip
    problem = row_problem(row, tuple(decide.split("+")), colocate)
    budget = Budget(samples=samples)
    if arm.endswith(EQUAL_SECONDS):
        budget = Budget(
            seconds=_seconds_of_one(known, (row, "GO-one", seed, samples, colocate, decide))
        )
    method = ARMS[arm](seed) if arm in ARMS else published_arm(arm, decide, seed)
    plan, spent = searched(lambda: method.optimize(problem, budget, seed), problem)
    return Run(
        row=row, arm=arm, seed=seed, samples=samples,
        expert_ms=1e3 * MakespanExpert().optimize(problem, Budget(samples=1), 0).value,
        milliseconds=1e3 * plan.value, seconds=round(spent, 1),
        curve=[[p.samples, p.wall_seconds, 1e3 * p.seconds] for p in plan.curve],
        colocate=colocate, decide=decide,
    )  # fmt: skip


def _seconds_of_one(known: Sequence[Run], key: tuple[object, ...]) -> float:
    for run in known:
        if tuple(getattr(run, name) for name in KEY) == key:
            return run.seconds
    row, arm, seed, *_ = key
    raise SystemExit(f"{row}, seed {seed}: equal seconds need a run of {arm}; name that arm first")


def page(runs: Sequence[Run], shown: int) -> str:
    """Return the page; runs of other numbers of samples than ``shown`` have their own table."""
    main_runs = [r for r in runs if r.samples == shown]
    text = (
        "# GO's own form, learning alone on each row\n\nMilliseconds a step of the best placement, "
        "P100-class devices by the analytical cost model; mean over the seeds of an arm, their "
        "number in brackets where it is not one. *learned*: a policy of the form `nodes` from "
        "untrained weights; *without carrying*: without graph-level numbers and without "
        "carrying plans over; *untrained*: the same draws, nothing is learned; *blind*: it sees no "
        "edge. The recipe was chosen on training problems, not on these rows. *zero-shot*: weights "
        "that were pretrained on networks of none of these families, nothing is learned. Means are "
        "over the rows that an arm has, so they compare only where rows are the same; the pairs "
        "below do.\n"
    )
    text += _milliseconds(main_runs, shown) + _ratios(main_runs, shown) + _pairs(main_runs, shown)
    more = sorted({r.samples for r in runs if r.samples != shown})
    return text + "".join(_ratios([r for r in runs if r.samples == n], n) for n in more)


def _arms(runs: Sequence[Run]) -> list[str]:
    return [arm for arm in ARMS if any(r.arm == arm for r in runs)]


def _of(runs: Sequence[Run], row: str, arm: str) -> list[Run]:
    return [r for r in runs if r.row == row and r.arm == arm]


def _ratio(runs: Sequence[Run], row: str, arm: str, count: int) -> float:
    """Milliseconds over the expert's; the geometric mean of the seeds."""
    return geometric_mean(best_after(r.curve, count) / r.expert_ms for r in _of(runs, row, arm))


def _milliseconds(runs: Sequence[Run], shown: int) -> str:
    def mean(row: str, arm: str) -> str:
        found = [r.milliseconds for r in _of(runs, row, arm)]
        return mean_cell(found) + (f" ({len(found)})" if len(found) > 1 else "")

    columns = {
        "expert": lambda row: f"{next(r.expert_ms for r in runs if r.row == row):.2f}",
        **{arm: lambda row, arm=arm: mean(row, arm) for arm in _arms(runs)},
        "seconds, learned": lambda row: mean_cell(
            [r.seconds for r in _of(runs, row, "learned")], 0
        ),
    }
    table = grid_table("row", known_rows(runs), columns)
    return f"\n## Milliseconds after {shown:,} samples\n\n{table}"


def _ratios(runs: Sequence[Run], shown: int) -> str:
    """Ratio to the expert by row and number of samples, with the geometric mean over rows."""
    counts = [*(n for n in AFTER if n < shown), shown]
    every = known_rows(runs)

    def ratios(rows: list[str], arm: str) -> str:
        mine = [row for row in rows if _of(runs, row, arm)]
        means = [geometric_mean(_ratio(runs, row, arm, n) for row in mine) for n in counts]
        told = " / ".join(map(cell, means)) if mine else NOTHING
        return told if rows is not every else f"{told} ({len(mine)} rows)"

    rows = {**{row: [row] for row in every}, "**geometric mean**": every}
    return (
        f"\n## Over the expert, runs of {shown:,} samples\n\nAfter "
        f"{', '.join(f'{n:,}' for n in counts)} samples.\n\n"
        f"{grid_table('row', rows, _arms(runs), ratios)}"
    )


def _pairs(runs: Sequence[Run], shown: int) -> str:
    """What learning adds: paired with every other arm, on the rows and seeds that both have."""
    lines = []
    for arm in (arm for arm in _arms(runs) if arm != "learned"):
        ratios = []
        for row in known_rows(runs):
            theirs = {r.seed: best_after(r.curve, shown) for r in _of(runs, row, arm)}
            pairs = [
                best_after(r.curve, shown) / theirs[r.seed]
                for r in _of(runs, row, "learned")
                if r.seed in theirs
            ]
            ratios += [geometric_mean(pairs)] if pairs else []
        less = sum(x < 0.995 for x in ratios)
        more = sum(x > 1.005 for x in ratios)
        counts = map(str, (less, len(ratios) - less - more, more))
        lines.append([arm, cell(geometric_mean(ratios)), *counts])
    return (
        "\n## What learning adds\n\nStep time of *learned* over another arm's, paired by row "
        "and seed: geometric mean, and rows where it is shorter, level (0.5 %), longer.\n\n"
        f"{markdown_table(['against', 'ratio', 'shorter', 'level', 'longer'], lines)}"
    )
