"""The inner tuners of kernels: a guide says which fusions and which settings are measured next.

"A Learned Performance Model for TPUs" (Kaufman et al., MLSys 2021): a search guided by the learned
model; the top k of what it finds are run for real, and the best of these is kept, k = 10 for
decisions of the whole graph and k = 5 for those of single kernels.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence

import numpy as np

from go_rl.costs.kernels.measure.settings import flag_settings
from go_rl.runtime.records import AS_IT_COMES
from go_rl.tuning.config import GUIDED, TuneConfig, check_name
from go_rl.tuning.loop.nouns import Candidate, CandidateSpace, InnerTuner, MakeInnerTuner, Trial
from go_rl.tuning.tuners.registry import TUNERS, inner_tuner
from go_rl.tuning.xla.budget import TuningBudget
from go_rl.tuning.xla.fusions import FusionSpace, GraphFusion
from go_rl.tuning.xla.guides import Guide
from go_rl.tuning.xla.kernel_times import KernelTimes
from go_rl.tuning.xla.kernel_trials import gain_of
from go_rl.tuning.xla.setting_space import SettingSpace

SEARCH_SHARE = 0.2
"""Share of the time left that the search for one batch of fusions may take."""
POOLS = 8
"""Pools in a row without anything worth a trial after which no fusion is left."""


class GuidedFusions:
    """Proposes fusions that hold an unmeasured kernel, those first that the guide puts first, and
    beside them those whose kernels are all measured then, which take no time.

    Args:
        times: what is known.
        guide: orders fusions.
        budget: bounds the search.
        config: how many.
    """

    def __init__(
        self, times: KernelTimes, guide: Guide, budget: TuningBudget, config: TuneConfig
    ) -> None:
        self._times, self._guide, self._budget, self._config = times, guide, budget, config
        self._batches = 0

    def propose(self, count: int) -> list[Candidate]:
        """Return fusions; fewer pools are searched when the time is short."""
        searched = self._budget.spent + SEARCH_SHARE * self._budget.left
        times, guide = self._times, self._guide
        guide.fusions.order([times.space.default, times.best])  # to learn how far they are off
        guide.fusions.learn(times.seconds)
        for number in range(POOLS):
            pool = self._pool(number, searched)
            fresh = [each for each in pool if each.key not in times.tried]
            costly = [each for each in fresh if not times.knows_all(each)]
            chosen = costly[:count] if guide.selective else costly
            found = chosen + self._free(fresh, chosen)
            if found:
                return [times.space.write(each) for each in found]
            if self._budget.spent >= searched:
                break
        return []

    def observe(self, trials: Sequence[Trial]) -> None:
        self._batches += 1

    def _pool(self, number: int, searched: float) -> list[GraphFusion]:
        """Fusions in the order of the guide."""
        times, config = self._times, self._config
        rng = np.random.default_rng((config.seed, 0, max(0, self._batches - 1), number))
        best = None if len(times.tried) == 1 else times.best
        return propose(
            times.space, self._guide, best, config.candidates, rng,
            lambda: self._budget.spent >= searched,
        )  # fmt: skip

    def _free(
        self, fresh: Sequence[GraphFusion], chosen: Sequence[GraphFusion]
    ) -> list[GraphFusion]:
        """Fusions whose kernels are all known once ``chosen`` are measured; where they are known
        already, only those that seem faster than the best."""
        times = self._times
        known = {part.hash for each in chosen for part in each.parts}
        taken = {each.key for each in chosen}
        return [
            each
            for each in fresh
            if each.key not in taken
            and all(part.hash in known or times.knows(part.hash) for part in each.parts)
            and (not times.knows_all(each) or gain_of(each, times) > 0.0)
        ]


class GuidedSettings:
    """Proposes a kernel's first settings by the guide, each once.

    Args:
        times: what is known.
        kernel: hash of the kernel.
        guide: orders settings.
        config: how many.
    """

    def __init__(self, times: KernelTimes, kernel: str, guide: Guide, config: TuneConfig) -> None:
        self._times, self._kernel, self._guide, self._config = times, kernel, guide, config
        self._observed: set[str] = set()

    def propose(self, count: int) -> list[Candidate]:
        kernels = self._times.best.kernels
        which = np.array([kernels.hashes.index(self._kernel)], np.int64)
        scores = self._guide.settings.order(kernels.take(which))[0, 1:]
        names = flag_settings()[1:]
        order = [names[i] for i in np.argsort(scores, kind="stable").tolist()]
        wanted = order[: self._config.k_kernel] if self._guide.selective else order
        return [Candidate(each) for each in wanted if each not in self._observed][:count]

    def observe(self, trials: Sequence[Trial]) -> None:
        self._observed |= {trial.candidate.key for trial in trials}


class NotedTuner:
    """An inner tuner whose trials `KernelTimes` knows. The first fusion is XLA's default.

    Args:
        tuner: proposes all others.
        times: is told of trials.
        kernel: hash of the kernel whose settings are tuned; None: fusions are.
    """

    def __init__(self, tuner: InnerTuner, times: KernelTimes, kernel: str | None) -> None:
        self._tuner, self._times, self._kernel = tuner, times, kernel

    def propose(self, count: int) -> list[Candidate]:
        if self._kernel is None and not self._times.tried:
            return [self._times.space.write(self._times.space.default)]
        return self._tuner.propose(count)

    def observe(self, trials: Sequence[Trial]) -> None:
        self._times.observe(trials, self._kernel)
        self._tuner.observe([t for t in trials if t.candidate.key != AS_IT_COMES])


def check_tuner(name: str) -> None:
    """Raise a `TuningError` for a name that is no inner tuner's."""
    check_name("inner tuner", name, (GUIDED, *TUNERS))


def kernel_tuner(
    times: KernelTimes, guide: Guide, budget: TuningBudget, config: TuneConfig
) -> MakeInnerTuner:
    """Return what makes the inner tuners of kernels and of fusions.

    Args:
        times: is told of trials.
        guide: of the tuner ``guided``.
        budget: of the run.
        config: names the tuner.

    Raises:
        TuningError: there is no such tuner.
    """
    check_tuner(config.tuner)
    other = None if config.tuner == GUIDED else inner_tuner(config.tuner)

    def made(space: CandidateSpace, seed: int) -> InnerTuner:
        kernel = space.kernel if isinstance(space, SettingSpace) else None
        if other is not None:
            tuner = other(space, seed)
        elif kernel is not None:
            tuner = GuidedSettings(times, kernel, guide, config)
        else:
            tuner = GuidedFusions(times, guide, budget, config)
        return NotedTuner(tuner, times, kernel)

    return made


GENERATIONS = 3
"""Generations of mutants, each from the best by prediction of all before."""
PARENTS = 8
"""Fusions that a generation is made of."""


def propose(
    space: FusionSpace,
    guide: Guide,
    best: GraphFusion | None,
    count: int,
    rng: np.random.Generator,
    over: Callable[[], bool] = lambda: False,
) -> list[GraphFusion]:
    """Return distinct fusions, those first that the guide would measure first.

    Args:
        space: of the graph.
        guide: orders them.
        best: the best one measured so far; from the second round on, half of the pool is mutants.
        count: fusions in the pool, and in each generation of a guide that predicts.
        rng: the source of chance.
        over: says that a guide that predicts has searched long enough.
    """
    pool = space.pool(count if best is None else max(2, count // 2), rng)
    if best is not None:
        pool += space.mutants([best], count // 2, rng)
    found = _ordered(guide, pool, ())
    for _ in range(GENERATIONS if guide.predicts else 0):
        if over():
            break
        parents = [fusion for _, fusion in found[:PARENTS]]
        new = _ordered(guide, space.mutants(parents, count, rng), {f.key for _, f in found})
        found = sorted([*found, *new], key=lambda pair: pair[0])
    return [fusion for _, fusion in found]


def _ordered(
    guide: Guide, pool: list[GraphFusion], known: Collection[str]
) -> list[tuple[float, GraphFusion]]:
    """Distinct fusions that are not known, with their scores, by these."""
    new = list({f.key: f for f in pool if f.key not in known}.values())
    if not new:
        return []
    return sorted(zip(guide.fusions.order(new).tolist(), new, strict=True), key=lambda p: p[0])
