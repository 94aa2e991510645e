"""GO as published: the configuration, its arms on the rows, and the tables of `go_own_form`.

The network has GO's parts (Zhou et al. 2020, section 3): GraphSAGE, segmented recurrent attention
with conditioning, recurrent heads, three iterations of free logits, nothing of earlier plans or of
neighbours put in beforehand. PPO earns -sqrt(seconds / default), -10 for what cannot run, against a
running baseline of the graph. Graphs have TensorFlow's colocation (``--colocate gradients``).

What still differs from the paper: a unit is what fusion would merge, and the network sees features
of the hardware and places in reference orders beside types and sizes; GraphSAGE pools producers and
consumers apart, by a ReLU where the paper has a sigmoid, with residual connections; the gate of the
conditioning is 2 sigmoid(c(x)); a segment has 128 units; the baseline is an exponential mean and
divided by the deviation, theirs the mean of all trials. Width, layers, learning rate and batch are
not in the material that we have; those here are ours.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from experiments.experiment import ROOT
from experiments.page_text import NOTHING, cell, grid_table
from experiments.placement.go_rows import best_after, known_rows
from experiments.placement.hdp_reproduction import Run as HdpRun
from experiments.rows import grouped
from experiments.statistics import geometric_mean, with_range
from go_rl.core import Objective, Optimizer
from go_rl.objectives.methods import Composed, MakespanAnnealing
from go_rl.policy.agent import Agent, new_agent
from go_rl.policy.config import NodesPolicyConfig
from go_rl.policy.learn.config import FineTuneConfig, PPOConfig
from go_rl.policy.learn.fine_tune import FineTuned
from go_rl.policy.policy_search import PolicySearch
from go_rl.policy.weights import load_weights

POLICY = NodesPolicyConfig(
    hidden=64, sage_layers=2, attention_layers=2, heads=4, decoder_width=64, iterations=3,
    directions=0, carry=False, neighbours_first=False,
)  # fmt: skip
PPO = PPOConfig(learning_rate=1e-3, epochs=4, clip=0.2, entropy=1e-2)
LEARNING = FineTuneConfig(batch=16, first=1, top=None, ppo=PPO)
RUNS = ROOT / "experiments" / "learning" / "runs"
"""Folder of the pretrained weights, which `long.toml` makes."""
EQUAL_SECONDS = ", equal seconds"
"""End of the name of a classical arm that has the seconds of GO-one on the same row and seed."""
CLASSICAL: dict[str, Callable[[], Optimizer]] = {
    "annealing": MakespanAnnealing, "composed": Composed
}  # fmt: skip
LEARNED = ("GO-one", "GO zero-shot", "GO fine-tuned")
CONTROLS = ("untrained", "random-encoder", "blind")
TIMED = 3
"""Numbers of a point of a curve that has its time."""
WITHOUT_TIE = 0.995
"""A step time below this share of another's counts as shorter."""


@dataclass(frozen=True)
class Run:
    """One search."""

    row: str
    arm: str
    seed: int
    samples: int
    expert_ms: float
    milliseconds: float
    """Step time of the best plan."""
    seconds: float
    """Time of the search with compilation; other programs shared the cores."""
    curve: list[list[float]]
    """[samples, seconds, ms] at every improvement; older runs have no seconds."""
    colocate: str = "graph"
    """Operators that share a device: graph or gradients."""
    decide: str = "placement"
    """Decisions, with + between."""


def weights_folder(decide: str, seed: int) -> str:
    """Return the name of the pretraining run whose weights an arm takes."""
    return f"go-{'placement' if decide == 'placement' else 'all'}-{seed}"


def pretrained(decide: str, seed: int) -> Agent:
    """Return the pretrained agent of a seed; ends the script where it is missing."""
    path = RUNS / weights_folder(decide, seed) / "weights.npz"
    if not path.exists():
        raise SystemExit(f"{path} is missing: make long trains it")
    return load_weights(path, Objective.MAKESPAN).agent


def published_arm(arm: str, decide: str, seed: int) -> Optimizer:
    """Return the method of an arm of `LEARNED`, a control arm of one (``GO zero-shot, blind``), or
    a classical one."""
    name, _, control = arm.partition(", ")
    if name in CLASSICAL:
        return CLASSICAL[name]()
    if name == "GO-one":
        agent = replace(new_agent(POLICY, seed), blind=control == "blind")
        return FineTuned(agent, config=LEARNING, name="nodes")
    agent, chosen = pretrained(decide, seed), control or None
    if name == "GO zero-shot":
        return PolicySearch(agent, control=chosen, name="zero-shot")
    return FineTuned(agent, config=LEARNING, control=chosen, name="fine-tuned")


ARMS = (
    *LEARNED, "GO-one, blind", *(f"GO zero-shot, {each}" for each in CONTROLS), *CLASSICAL,
    *(f"{each}{EQUAL_SECONDS}" for each in CLASSICAL),
)  # fmt: skip
"""Arms in the order in which they are run: what has equal seconds comes after GO-one."""


def published_sections(runs: Sequence[Run], hdp: Sequence[HdpRun]) -> str:
    """Return the sections of the page on GO as published, one for each set of decisions and number
    of samples."""
    own = grouped(
        [r for r in runs if r.colocate == "gradients"], lambda run: (run.decide, run.samples)
    )
    return "".join(_section(mine, hdp, *asked) for asked, mine in own.items())


MEAN = "**geometric mean**"
"""Heading of the line over all rows."""


def _mean(runs: Sequence[Run]) -> str:
    """The geometric mean over the rows of an arm, by seed, and how many rows it has."""
    seeds = grouped(runs, lambda run: run.seed).values()
    means = [geometric_mean(r.milliseconds / r.expert_ms for r in mine) for mine in seeds]
    return f"{with_range(means, '.3f')}, {len({run.row for run in runs})} rows"


def _section(runs: Sequence[Run], hdp: Sequence[HdpRun], decide: str, samples: int) -> str:
    rows = known_rows(runs)
    arms = [arm for arm in ARMS if any(r.arm == arm for r in runs)]

    def ratio(row: str, arm: str) -> str:
        if row == MEAN:
            return _mean([r for r in runs if r.arm == arm])
        found = [r.milliseconds / r.expert_ms for r in runs if (r.row, r.arm) == (row, arm)]
        return f"{cell(geometric_mean(found))} ({len(found)})" if found else NOTHING

    text = (
        f"\n## GO as published: {decide}, {samples:,} samples\n\nStep time of the best plan over "
        "the expert's: geometric mean of the seeds, their number in brackets. Gradients sit with "
        "their operators, updates with their weights. The last line: the geometric mean of the "
        "rows, over seeds (least to greatest).\n\n"
        f"{grid_table('row', [*rows, MEAN], arms, ratio)}\n"
    )
    lines = {
        f"{arm} over {other}": paired(runs, arm, other)
        for arm in LEARNED if arm in arms for other in (*arms, *BESTS) if other != arm
    }  # fmt: skip
    columns = {
        "ratio": lambda pairs: cell(geometric_mean(pairs)),
        "pairs": lambda pairs: str(len(pairs)),
        "shorter": lambda pairs: str(sum(x < WITHOUT_TIE for x in pairs)),
        "longer": lambda pairs: str(sum(x > 1 / WITHOUT_TIE for x in pairs)),
    }
    text += (
        "\nPaired by row and seed; *best classical*: the better of "
        f"{' and '.join(CLASSICAL)}.\n\n"
        f"{grid_table('against', {k: v for k, v in lines.items() if v}, columns)}"
    )
    return text + (_search_times(runs, hdp) if decide == "placement" else "")


BESTS = {
    "best classical": tuple(CLASSICAL),
    f"best classical{EQUAL_SECONDS}": tuple(f"{each}{EQUAL_SECONDS}" for each in CLASSICAL),
}


def paired(runs: Sequence[Run], arm: str, other: str) -> list[float]:
    """Return the step times of an arm over those of another, or of the best of several, for each
    row and seed that both have."""
    others = BESTS.get(other, (other,))
    best: dict[tuple[str, int], float] = {}
    for run in runs:
        if run.arm in others:
            key = run.row, run.seed
            best[key] = min(run.milliseconds, best.get(key, run.milliseconds))
    mine = [r for r in runs if r.arm == arm and (r.row, r.seed) in best]
    return [r.milliseconds / best[r.row, r.seed] for r in mine]


def _search_times(runs: Sequence[Run], hdp: Sequence[HdpRun]) -> str:
    """HDP against GO-one: plans, and how long HDP searches for what GO finds sooner."""
    theirs = {
        (r.row, r.seed): r for r in hdp
        if r.colocate == "gradients" and r.attempt == "published"
    }  # fmt: skip
    pairs = {
        f"{r.row}, seed {r.seed}": (r, theirs[r.row, r.seed])
        for r in runs if r.arm == "GO-one" and (r.row, r.seed) in theirs
    }  # fmt: skip
    if not pairs:
        return ""
    columns = {
        "GO-one, ms": lambda pair: f"{pair[0].milliseconds:.2f}",
        "HDP, ms": lambda pair: f"{pair[1].milliseconds:.2f}",
        "HDP's search time over GO's": lambda pair: cell(search_speed_up(*pair), 1),
    }
    ratios = [search_speed_up(*pair) for pair in pairs.values()]
    known = [ratio for ratio in ratios if ratio == ratio]
    return (
        "\nSearch time: until HDP's last improvement, over the time until GO-one is as good; a "
        "dash: it never is, or a run has no times. GO's includes compilation, HDP's does not."
        f" Geometric mean of {len(known)} of {len(ratios)}: "
        f"{cell(geometric_mean(known), 1)}.\n\n{grid_table('row', pairs, columns)}"
    )


def search_speed_up(go: Run, hdp: HdpRun) -> float:
    """Return HDP's seconds until its last improvement over GO's until it is as good; NaN: it never
    is, or a run has no times."""
    if min(len(point) for point in (*go.curve, *hdp.curve)) < TIMED:
        return float("nan")
    best = best_after(hdp.curve, hdp.samples)
    reached = [seconds for _, seconds, ms in go.curve if ms <= best]
    if not reached:
        return float("nan")
    return max(seconds for _, seconds, _ in hdp.curve) / min(reached)
