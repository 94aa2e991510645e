"""`LayerCuts`: the best plan that a launcher which counts whole layers can be told.

What comes before the layers, the layers, and what comes behind them form a chain, which is cut into
contiguous stages on devices 0, 1, 2, ... All cuts are tried where they are few, else those that
moving cuts in a row reaches from stages of balanced work and from random ones.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import combinations, pairwise
from math import comb

import numpy as np
from jaxtyping import Float64, Int16, Int64

from go_rl.compare.portfolio import Result, run, summarise
from go_rl.core import Budget, Plan, Problem, Progress, SplitError, Status, with_bound
from go_rl.graphs.cutting.layer_blocks import BEFORE, ELSEWHERE, layer_blocks
from go_rl.objectives.common.incumbent import Incumbent, finish_plan
from go_rl.objectives.common.workspace import Workspace
from go_rl.objectives.kits import kit_of
from go_rl.objectives.makespan.choices import NOWHERE
from go_rl.plans.splits.broken_rules import broken_rules
from go_rl.plans.splits.judge import split_decisions
from go_rl.plans.splits.split import SplitContext, split_of

JOINED: dict[str, tuple[bool, bool]] = {
    "vllm": (True, True),
    "llama.cpp": (True, False),
    "torchtitan": (False, False),
    "megatron": (False, False),
    "hf": (False, False),
}
"""Tools that count layers: whether what comes before them is tied to the first, and what comes
behind them to the last."""
ALL_CUTS = 20_000
"""Cuts that are all tried."""
BATCH = 256
"""Cuts that are priced at a time."""
CHECKED = 40
"""Fastest cuts that are held against the rules until one keeps them."""
RESTARTS = 20
"""Random starts of the search by moves."""
UNABLE = 1e9
"""Seconds of an operator on a device that cannot run it, where stages are balanced."""
Cuts = tuple[int, ...]
"""First item of the second stage, of the third, and so on; ascending."""


@dataclass(frozen=True)
class LayerCuts:
    """`Optimizer`: contiguous stages of whole layers, as the tool ``sink`` takes them."""

    sink: str

    @property
    def name(self) -> str:
        return f"for {self.sink}"

    def optimize(self, problem: Problem, budget: Budget, seed: int) -> Plan:
        """Return the best plan of whole layers; see `go_rl.core.Optimizer`.

        Raises:
            SplitError: the graph's names state no layers.
        """
        workspace, progress = kit_of(problem).workspace(problem), Progress(budget)
        search = _Search(workspace, _items(problem, self.sink), progress, seed)
        incumbent = Incumbent(workspace, progress)
        for cuts in search.fastest():
            device = search.devices([cuts])[0]
            if not broken_rules(workspace, device):
                for decisions in split_decisions(workspace, device):
                    incumbent.offer(decisions, workspace.detail(decisions))
                break
        failure = workspace.failed(
            Status.GAVE_UP, f"no split into whole layers keeps the rules and fits ({self.sink})"
        )
        found = incumbent if incumbent.evaluation.status.ok else failure
        return finish_plan(workspace, found, self.name, seed, progress, workspace.bound)


def _items(problem: Problem, sink: str) -> Int64[np.ndarray, "N"]:
    """[N] item of the chain that each node belongs to; `NOWHERE`: none."""
    blocks = layer_blocks(problem.graph)
    if blocks.count == 0:
        raise SplitError(
            f"--for {sink} counts layers, and the node names of {problem.graph.name!r} state none, "
            "such as 'layers.0/...' or 'layer_0/...'"
        )
    first, last = JOINED[sink]
    at = blocks.position
    item = np.where(first & (at == BEFORE), BEFORE + 1, at)
    item = np.where(last & (at == blocks.behind), blocks.count, item)
    _, number = np.unique(item[at != ELSEWHERE], return_inverse=True)
    found = np.full(len(at), NOWHERE)
    found[at != ELSEWHERE] = number
    return found


class _Search:
    """Cuts of one problem, priced once each."""

    def __init__(
        self, workspace: Workspace, item: Int64[np.ndarray, "N"], progress: Progress, seed: int
    ) -> None:
        self.workspace, self.item, self.progress = workspace, item, progress
        self.count = int(item.max()) + 1
        self.stages = min(workspace.problem.hardware.num_devices, self.count)
        self.random = np.random.default_rng(seed)
        self.seen: dict[Cuts, float] = {}
        problem = workspace.problem
        setting = SplitContext(problem.graph, problem.hardware, "layers")
        # A node outside the chain follows an item, whatever the cuts: stages ascend along it.
        self.follows = split_of(setting, "layers", item).device.astype(np.int64)

    def devices(self, cuts: Sequence[Cuts]) -> Int16[np.ndarray, "C N"]:
        """Return [C, N] devices of cuts."""
        stage = np.zeros((len(cuts), self.count), np.int16)
        for row, each in zip(stage, cuts, strict=True):
            for first in each:
                row[first:] += 1
        return stage[:, self.follows]

    def price(self, cuts: Sequence[Cuts]) -> None:
        """Price cuts that are new."""
        fresh = [each for each in dict.fromkeys(cuts) if each not in self.seen]
        for first in range(0, len(fresh), BATCH):
            part = fresh[first : first + BATCH]
            decisions = self.workspace.on(self.devices(part))
            seconds: Float64[np.ndarray, "C"] = self.workspace.evaluate(decisions).seconds
            self.seen.update(zip(part, seconds.tolist(), strict=True))
            self.progress.samples += len(part)

    def fastest(self) -> list[Cuts]:
        """Return the fastest cuts that were found."""
        total = sum(comb(self.count - 1, stages - 1) for stages in range(1, self.stages + 1))
        if total <= ALL_CUTS:
            self.price([c for stages in range(self.stages)
                        for c in combinations(range(1, self.count), stages)])  # fmt: skip
        else:
            for start in self._starts():
                self._descend(start)
                if self.progress.spent:
                    break
        ranked = sorted(self.seen, key=self.seen.__getitem__)
        return [cuts for cuts in ranked[:CHECKED] if np.isfinite(self.seen[cuts])]

    def _starts(self) -> Iterator[Cuts]:
        """Stages of balanced work on all devices, on fewer, and random ones."""
        for stages in range(self.stages, 0, -1):
            yield self._balanced(stages)
        for _ in range(RESTARTS if self.stages > 1 else 0):
            size = int(self.random.integers(1, self.stages))
            yield tuple(sorted((self.random.permutation(self.count - 1)[:size] + 1).tolist()))

    def _balanced(self, stages: int) -> Cuts:
        """Cuts whose slowest stage has the least work, transfers aside: exact, by dynamic
        programming over the end of each stage."""
        problem = self.workspace.problem
        seconds = np.where(np.isfinite(problem.seconds), problem.seconds, UNABLE)
        item = [np.bincount(self.follows, row, self.count) for row in seconds]
        until = np.concatenate([np.zeros((len(item), 1)), np.cumsum(item, axis=1)], axis=1)
        kind = problem.device_kind
        slowest, begin = until[kind[0]].copy(), []
        for stage in range(1, stages):
            # [end, begin]: the slowest of the stages before, and the work from begin to end
            work = until[kind[stage]][:, None] - until[kind[stage]][None]
            either = np.maximum(slowest[None], np.where(work > 0, work, np.inf))
            begin.append(either.argmin(axis=1))
            slowest = either.min(axis=1)
        cuts, end = [], self.count
        for first in reversed(begin):
            end = int(first[end])
            cuts.append(end)
        return tuple(sorted({cut for cut in cuts if 0 < cut < self.count}))

    def _descend(self, cuts: Cuts) -> None:
        """Move cuts while that helps."""
        self.price([cuts])
        while not self.progress.spent:
            near = list(self._near(cuts))
            self.price(near)
            best = min(near, key=self.seen.__getitem__, default=cuts)
            if not self.seen[best] < self.seen[cuts]:
                return
            cuts = best

    def _near(self, cuts: Cuts) -> Iterator[Cuts]:
        """Neighbours: cuts in a row that move by one or two items together."""
        for i in range(len(cuts)):
            for j in range(i + 1, len(cuts) + 1):
                for by in (-2, -1, 1, 2):
                    moved = (*cuts[:i], *(cut + by for cut in cuts[i:j]), *cuts[j:])
                    inside = moved[0] >= 1 and moved[-1] < self.count
                    if inside and all(a < b for a, b in pairwise(moved)):
                        yield moved


def optimize_layers(
    problem: Problem,
    sink: str,
    budget: Budget,
    seed: int = 0,
    report: Callable[[str], None] | None = None,
) -> Result:
    """Return the reference plans of a problem and the best plan of whole layers, which is the
    result's best, with a note on what that restriction costs at most.

    Args:
        problem: what to optimise.
        sink: a key of `JOINED`.
        budget: of the search for layers.
        seed: of its random starts.
        report: called with a sentence as each method starts.

    Raises:
        SplitError: the graph's names state no layers.
    """
    first = kit_of(problem).search().references[0]
    result = run(problem, first, budget, seed, report, (LayerCuts(sink),))
    layered = next(plan for plan in result.plans if plan.optimizer == LayerCuts(sink).name)
    alone = summarise(problem, [with_bound(layered, result.bound)]).best  # offsets confirmed
    free = min(result.plans, key=lambda plan: plan.value)
    best = replace(alone, notes=(_cost(alone, free, sink), *alone.notes))
    plans = tuple(best if plan.optimizer == best.optimizer else plan for plan in result.plans)
    return Result(problem, plans, best, result.bound)


def _cost(plan: Plan, free: Plan, sink: str) -> str:
    """The cost of whole layers against free operators, as far as it is known."""
    what = f"Whole layers, as {sink} takes them,"
    if not plan.evaluation.status.ok:
        return f"{what} leave no plan; without --for {sink} operators are free."
    words = "cost nothing: no plan of free operators is faster."
    if not plan.optimal:
        words = "may cost something; no bound says how much."
    if not plan.optimal and np.isfinite(plan.gap):
        words = f"cost at most {100 * plan.gap:.1f} % of time against free operators."
    if free.value < plan.value:
        slower = 100 * (plan.value / free.value - 1)
        words += f" They are {slower:.1f} % slower than {free.optimizer} with free operators."
    return f"{what} {words}"
