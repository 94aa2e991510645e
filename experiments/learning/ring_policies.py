"""Policies of rings on the zoo's validation problems, beside control arms and classical methods.

Run: ``python -m experiments.learning.ring_policies [--weights NAME] [--seeds 3]``.
Validation families, strict rules, memory checked: the families by which weights are chosen, so this
is no test. Every method gets 200 samples; what it has after 20 is read from the same run, but for
annealing, whose temperatures follow the budget. Ratios are the other method's seconds over the
policy's, averaged over seeds, problems of a family, then families, with a bootstrap interval over
families. Finished runs are kept in ``results/ring_policies`` and not made again.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from experiments.experiment import Experiment, say
from experiments.page_text import NOTHING, markdown_table
from experiments.statistics import family_means, geometric_mean, ratio_of
from go_rl.compare.benchmark.comparison import reach_value
from go_rl.compare.benchmark.config import EvaluateConfig
from go_rl.compare.benchmark.evaluate import evaluate
from go_rl.compare.benchmark.run_store import Run
from go_rl.compare.controls.control_table import paired_logs

PROBLEMS = {
    "ring36": ("bifpn-d0", "densenet121", "moe-8-experts", "ssd-mobilenet", "wavernn-896"),
    "ring16": ("bifpn-d0", "wavernn-896"),
    "ring16-mixed": ("densenet121", "moe-8-experts", "ssd-mobilenet"),
}
"""Validation problems of at most 1,300 nodes, by hardware."""
LEARNED_ON = ("bifpn-d0", "ssd-mobilenet", "wavernn-896")
"""Graphs on 36 chips on which fine-tuning and learning from scratch are compared."""
FEW, MANY = 20, 200
"""Samples."""
DECODERS = {"policy-placement": "placement", "policy": "order"}
"""Methods and what the network decides."""


@dataclass(frozen=True)
class RingPolicies(Experiment):
    """Options of this experiment."""

    weights: str = "partition-1.1"
    """Weights whose control arms are run."""
    others: tuple[str, ...] = ()
    """Files of further weights, without control arms, such as a ``partition-1.0`` of tree
    d249caee, which the page has."""
    decoders: tuple[str, ...] = tuple(DECODERS)
    """Methods of the policy."""
    seeds: int = 3
    """Runs of each method on each problem."""
    tuned_seeds: int = 2
    """The same of fine-tuning and scratch; 0: not run."""

    def run(self) -> None:
        """Make the missing runs, then the page."""
        families: Families = {}
        own: list[Run] = []
        rivals: dict[str, list[Run]] = {name: [] for name in self.others}
        for method in self.decoders:
            own += _runs(self, families, self.weights, method, controls=True)
            for name, runs in rivals.items():
                runs += _runs(self, families, name, method)
        tuned = list(_tuned(self, families)) if self.tuned_seeds else []
        self.write_page(page(self, families, own, rivals, tuned))


Families = dict[str, str]
"""Family of each graph."""


def _runs(
    options: RingPolicies, families: Families, weights: str, method: str, controls: bool = False
) -> Iterable[Run]:
    """All runs of a method with some weights; classical ones beside the first control arms."""
    first = controls and method == options.decoders[0]
    classical = ("linear-dp", "annealing") if first else ()
    for hardware, graphs in PROBLEMS.items():
        config = EvaluateConfig(
            graphs=tuple(f"zoo:{name}" for name in graphs),
            hardware=(hardware,),
            memory=True,
            methods=(method, *classical),
            weights=weights,
            controls=controls,
            samples=MANY,
            seeds=options.seeds,
        )
        found = evaluate(config, options.stem, say)
        families |= found.families
        yield from found.runs


def _tuned(options: RingPolicies, families: Families) -> Iterable[Run]:
    """Fine-tuning and learning from scratch, placement alone."""
    config = EvaluateConfig(
        graphs=tuple(f"zoo:{name}" for name in LEARNED_ON),
        memory=True,
        methods=("finetuned-placement", "scratch-placement"),
        weights=options.weights,
        samples=MANY,
        seeds=options.tuned_seeds,
    )
    found = evaluate(config, options.stem, say)
    families |= found.families
    yield from found.runs


def after(run: Run, samples: int) -> Run:
    """Return the run as it was after so many samples."""
    values = [value for count, _, value in run.curve if count <= samples]
    return replace(run, value=min(values, default=None))


def page(
    options: RingPolicies,
    families: Families,
    own: Sequence[Run],
    rivals: dict[str, list[Run]],
    tuned: Sequence[Run],
) -> str:
    """Return the page."""
    count = sum(len(graphs) for graphs in PROBLEMS.values())
    parts = [
        "# Policies of rings on validation problems",
        f"`{options.weights}` on {count} problems of {len(set(families.values()))} validation "
        f"families, strict rules, memory checked, {options.seeds} seeds. Weights are chosen by "
        f"these families. A ratio above 1: the policy is ahead. After {FEW} samples annealing is "
        f"cut off, not asked for {FEW}.",
    ]
    heads = ["against", f"{FEW} samples", "95 %", f"{MANY} samples", "95 %"]
    for method in options.decoders:
        mine = [run for run in own if run.method == method]
        lines = [
            [name, *(cell for n in (FEW, MANY) for cell in _ratio(theirs, mine, families, n))]
            for name, theirs in _against(method, own, rivals)
        ]
        parts += [f"## Decoder `{DECODERS[method]}`", markdown_table(heads, lines)]
    if tuned:
        parts += ["## Learning on the graph, decoder `placement`", *_learning(own, tuned)]
    return "\n\n".join(part.rstrip() for part in parts) + "\n"


def _against(
    method: str, own: Sequence[Run], rivals: dict[str, list[Run]]
) -> Iterable[tuple[str, list[Run]]]:
    """Every rival's name and runs."""
    names = dict.fromkeys(run.method for run in own)
    for name in names:
        if name != method and (name not in DECODERS) and _mine(name, method):
            yield name, [run for run in own if run.method == name]
    for weights, runs in rivals.items():
        yield f"{method} of `{weights}`", [run for run in runs if run.method == method]
    for other in DECODERS:
        if other != method and (runs := [run for run in own if run.method == other]):
            yield f"{other} of the same weights", runs


def _mine(name: str, method: str) -> bool:
    """Whether a method is no policy, or a control arm of this one."""
    return "(" not in name or name.split(" (")[0] == method


def _ratio(
    theirs: Sequence[Run], mine: Sequence[Run], families: Families, samples: int
) -> tuple[str, str]:
    logs = paired_logs([after(r, samples) for r in theirs], [after(r, samples) for r in mine])
    means = family_means((families[problem.graph], log) for problem, log in logs.items())
    if not len(means):
        return NOTHING, NOTHING
    ratio, low, high = ratio_of(means)
    return f"{ratio:.3f}", f"{low:.3f} to {high:.3f}"


def _learning(own: Sequence[Run], tuned: Sequence[Run]) -> list[str]:
    """Throughput against the reference plan, and samples to reach what scratch has in the end."""
    heads = ["problem", "zero-shot", "from scratch", "fine-tuned", "scratch: samples to its best",
             "fine-tuned: samples to reach it"]  # fmt: skip
    lines, ratios = [], []
    for problem in dict.fromkeys(run.problem for run in tuned):
        zero, scratch, fine = (
            [run for run in (*tuned, *own) if (run.problem, run.method) == (problem, method)]
            for method in ("policy-placement", "scratch-placement", "finetuned-placement")
        )
        goal = float(np.median([run.value for run in scratch if run.value is not None]))
        needed = [
            float(np.median([reach_value(run, goal) or MANY for run in runs]))
            for runs in (scratch, fine)
        ]
        ratios.append(needed[0] / needed[1])
        cells = [_throughput(runs) for runs in (zero, scratch, fine)]
        lines.append([problem.graph, *cells, *(f"{found:.0f}" for found in needed)])
    return [
        markdown_table(heads, lines),
        "To reach scratch's level (median over seeds) fine-tuning needs "
        f"{geometric_mean(ratios):.1f} times fewer samples, geometric mean over {len(ratios)} "
        f"problems (the paper: 1.9); {MANY} stand for never.",
    ]


def _throughput(runs: Sequence[Run]) -> str:
    found = [run.heuristic / run.value for run in runs if run.heuristic and run.value]
    return f"{np.median(found):.3f}" if found else NOTHING


if __name__ == "__main__":
    RingPolicies.main()
