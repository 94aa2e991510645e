"""What DynaTune's exploration term decides: variants of it on recorded pools.

Run: ``python -m experiments.tuning.replayed.exploration --folder DIR`` with the folder of
``schedulers_replayed``, whose paths it walks. The belief is `TransferBelief` without the network
that is tuned, which costs milliseconds; ``schedulers_replayed`` has the chosen ones over MCMC, too.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from math import log, sqrt

import numpy as np

from experiments.experiment import Experiment
from experiments.page_text import grid_table
from experiments.statistics import with_range
from experiments.tuning.replayed.replayed_runs import (
    NEAR,
    ReplayOptions,
    Setting,
    at_moments,
    library_of,
    reached,
)
from go_rl.tuning.loop.schedulers import scheduler_of
from go_rl.tuning.loop.schedulers.first_round import waiting_for_first_slot
from go_rl.tuning.loop.schedulers.predicted_gains import MILLISECONDS, PredictedGains
from go_rl.tuning.loop.schedulers.scheduler import Scheduler
from go_rl.tuning.loop.tuning_state import TuningState

CHOSEN_ON, JUDGED_ON = ("resnet18", "squeezenet"), ("vgg16-64px", "transformer-encoder")
SHORT, LONG = sqrt(0.2), sqrt(2.0)
"""√C of DynaTune, in milliseconds, where the initial latency is below 1 ms, and else."""
HEAD = """# DynaTune's exploration term

Variants of the score r + s · √(ln t / n) of an operator, r the milliseconds that a slot is
predicted to gain, n its slots so far, on the pools and paths of `schedulers_replayed`, {seeds}
seeds, with our belief that learned from the other networks. The paper has s = √2 ms, or √0.2 ms
"when the initial latency is < 1 ms". *By operator* reads that as the operator's own latency. Then
an operator that is short at first gets a tenth of the slots of others once predicted gains are
near zero, that is almost none until the others are finished, after hundreds of trials without
improvement; and the last improvement of a network is one of any operator. *By network* has one s
for all. *Share*: s = √2 · so much of the network's latency. *Rest of the budget*: r is what the
remaining time, divided by the operators that are not finished, is predicted to gain, for each slot
of it. *Staleness*: in place of the term so much of the latency · the chance h / (h + m) that the
next h trials of an operator whose best is m trials old beat it. *Sooner*, *within 1 %*, *regret*:
see `schedulers_replayed`; medians, in brackets the range of the seeds. Shares were chosen on
{chosen}; {judged} judge.
"""


@dataclass(frozen=True)
class ExplorationPage(ReplayOptions, Experiment):
    """Options of the script."""

    tuner: str = "annealing"
    seeds: int = 5

    def run(self) -> None:
        """Walk, and write the page."""
        networks = (*CHOSEN_ON, *JUDGED_ON)
        sets = self.sets(networks)
        library = library_of(sets, self.store(self.tuner), range(self.seeds))
        found: dict[tuple[str, str], list[tuple[float, ...]]] = {}
        for pools in sets:
            for seed in range(self.seeds):
                setting = self.setting(pools, seed, self.tuner, library)
                for name, figures in _figures(setting).items():
                    found.setdefault((name, pools.network), []).append(figures)
            print(pools.network, flush=True)
        head = HEAD.format(
            seeds=self.seeds, chosen=" and ".join(CHOSEN_ON), judged=" and ".join(JUDGED_ON)
        )
        titles = ("Sooner", f"Within {NEAR:.0%}", "Regret, %")
        tables = [f"## {title}\n\n{_table(found, i, networks)}" for i, title in enumerate(titles)]
        self.write_page("\n\n".join((head.rstrip(), *tables)))


Score = Callable[[PredictedGains, TuningState, int], float]
"""Of an operator, in milliseconds."""


@dataclass(frozen=True, eq=False)
class Scored:
    """Gives slots by a score, after one for each operator."""

    gains: PredictedGains
    score: Score
    name: str = "exploration"
    dynamic: bool = True

    def choose(self, state: TuningState) -> int:
        """Return the operator of the next slot."""
        if fresh := waiting_for_first_slot(state):
            return fresh[0]
        return max(state.unfinished, key=lambda k: self.score(self.gains, state, k))

    def predicted(self, state: TuningState, operator: int) -> None:
        """Return None."""


def bound(scale: Callable[[TuningState, int], float]) -> Score:
    """Return gain and term with a scale in milliseconds."""
    return lambda gains, state, k: gains.gain(state, k) + scale(state, k) * _term(state, k)


def share(part: float) -> Score:
    """Return gain and term in proportion to the network's latency."""
    return bound(lambda state, _: LONG * part * MILLISECONDS * state.latency)


def staleness(part: float) -> Score:
    """Return gain and the chance of an improvement, worth a part of the latency."""

    def score(gains: PredictedGains, state: TuningState, operator: int) -> float:
        each = state.operators[operator]
        horizon = each.horizon(state.slot_seconds, state.config.batch)
        chance = horizon / (horizon + each.stale)
        return gains.gain(state, operator) + part * MILLISECONDS * state.latency * chance

    return score


def rest_of_budget(gains: PredictedGains, state: TuningState, operator: int) -> float:
    """Return what the rest of the budget gains, for each slot of it, and the term by network."""
    each, config = state.operators[operator], state.config
    left = (config.seconds - state.elapsed) / len(state.unfinished)
    slot = each.horizon(state.slot_seconds, config.batch)
    trials = max(slot, each.horizon(max(left, 0.0), config.batch))
    seed = config.seed, operator
    more = gains.belief.predict(each.curve, trials, state.peak_flops, seed).improvement
    seconds = each.seconds - each.operator.flops / (each.curve[-1] + more)
    gain = MILLISECONDS * each.operator.repeats * seconds * slot / trials
    return gain + LONG * _term(state, operator)


def _term(state: TuningState, operator: int) -> float:
    return sqrt(log(state.slot + 1) / state.operators[operator].slots)


def _by_operator(state: TuningState, operator: int) -> float:
    first = state.operators[operator].first_seconds
    return SHORT if first is not None and first < 1e-3 else LONG


VARIANTS: Mapping[str, Score] = {
    "by operator": bound(_by_operator),
    "by network (`dynatune`)": bound(lambda *_: LONG),
    "share 1 %": share(1e-2),
    "share 0.3 %": share(3e-3),
    "share 0.1 % (`dynatune-relative`)": share(1e-3),
    "share 0.03 %": share(3e-4),
    "gain alone": bound(lambda *_: 0.0),
    "rest of the budget": rest_of_budget,
    "staleness 1 %": staleness(1e-2),
    "staleness 0.3 %": staleness(3e-3),
}
RIVALS = ("epsilon-greedy", "ansor", "dynamic-random", "dynamic-round-robin")
"""Schedulers of the registry that are compared, `epsilon-greedy` over the same belief."""


def _figures(setting: Setting) -> dict[str, tuple[float, float, float]]:
    """How many times sooner the final latency is there, and one near it, and the regret."""
    assert setting.own is not None
    _, sequential = setting.run("sequential")
    _, oracle = setting.run("oracle")
    final, best = float(sequential[-1, 1]), at_moments(oracle, setting.budget)
    wanted = final, final * (1 + NEAR)
    known = [reached(sequential, latency) for latency in wanted]
    schedulers: dict[str, Scheduler] = {
        name: Scored(PredictedGains(setting.own), score) for name, score in VARIANTS.items()
    }
    schedulers |= {name: scheduler_of(name, setting.own) for name in RIVALS}
    found = {}
    for name, scheduler in schedulers.items():
        _, points = setting.walked(scheduler)
        sooner = [k / reached(points, x) for k, x in zip(known, wanted, strict=True)]
        above = at_moments(points, setting.budget) - best
        found[name] = (*sooner, 100 * float(above.mean()) / final)
    return found


def _table(
    found: Mapping[tuple[str, str], list[tuple[float, ...]]], place: int, networks: tuple[str, ...]
) -> str:
    def told(name: str, network: str) -> str:
        values = [each[place] for each in found[name, network]]
        return with_range(values, middle=np.median, to="–")

    return grid_table("score", (*VARIANTS, *RIVALS), networks, told)


if __name__ == "__main__":
    ExplorationPage.main()
