"""Cells of ``tuning_transfer``: which candidates of operators that are not tuned are reused, and
what the latency of the network and the time spent are then."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from jaxtyping import Float32, Float64, Int64

from experiments.tuning.guided.recorded_programs import RecordedPrograms
from go_rl.costs.programs.learn.examples import ProgramInputs
from go_rl.costs.programs.learn.transfer.attention_memory import TEMPERATURE, AttentionMemory
from go_rl.costs.programs.learn.transfer.tuner import TransferTuner
from go_rl.tuning.loop.tuning_state import heavy_operators

ATTENTION, OWN = "attention", "tuner alone"
FLOP, SHAPE, CHANCE, NONE = "nearest FLOP", "nearest shape", "random operator", "no reuse"
NO_TUNER = "no tuner"
ARMS = (ATTENTION, OWN, FLOP, SHAPE, CHANCE, NONE, NO_TUNER)
"""Who orders an untuned operator's candidates: attention to what was measured of tuned operators;
the tuner's own prediction; nearness to the best candidate of one tuned operator; nobody. Those of
the tuned operators are tried in the order of the tuner's prediction, but for the last arm."""
UNGUIDED = (NONE, NO_TUNER)
SECONDS_A_CANDIDATE = 0.03
"""What drawing a candidate and reading its features takes TVM, at most."""


@dataclass(frozen=True, eq=False)
class TunedPools:
    """A network's recorded candidates as the tuner sees them, in a random order of each
    operator."""

    network: str
    seconds: tuple[Float64[np.ndarray, "S"], ...]
    spent: tuple[Float64[np.ndarray, "S"], ...]
    features: tuple[Float64[np.ndarray, "S F"], ...]
    """Logarithms, for distances."""
    states: tuple[Float32[np.ndarray, "S W"], ...]
    scores: tuple[Float64[np.ndarray, "S"], ...]
    """The tuner's own: the smallest is the fastest."""
    repeats: Float64[np.ndarray, "O"]
    flops: Float64[np.ndarray, "O"]
    kinds: tuple[str, ...]
    sizes: tuple[Float64[np.ndarray, "D"], ...]
    """Logarithms of each operator's sizes."""
    recorded: RecordedPrograms

    @property
    def full_latency(self) -> float:
        """Seconds of the operators when all candidates are measured."""
        return float(sum(r * s.min() for r, s in zip(self.repeats, self.seconds, strict=True)))

    @property
    def full_time(self) -> float:
        """Seconds that measuring all of them takes."""
        return float(sum(s.sum() for s in self.spent))

    def order(self, k: int) -> Int64[np.ndarray, "S"]:
        """Rows of an operator's candidates by the tuner's prediction."""
        return np.argsort(self.scores[k], kind="stable")

    def heavy(self, share: float) -> tuple[int, ...]:
        """See `heavy_operators`."""
        return heavy_operators([pool.operator for pool in self.recorded.pools.pools], share)


def tuned_pools(recorded: RecordedPrograms, tuner: TransferTuner) -> TunedPools:
    """Return a network's pools with what the tuner says of them."""
    pools, programs = recorded.pools.pools, recorded.programs
    return TunedPools(
        network=recorded.pools.network,
        seconds=tuple(pool.seconds.astype(np.float64) for pool in pools),
        spent=tuple(pool.spent.astype(np.float64) for pool in pools),
        features=tuple(np.log1p(np.abs(pool.features.astype(np.float64))) for pool in pools),
        states=tuple(tuner.states(hidden(each)) for each in programs),
        scores=tuple(tuner.predict(hidden(each)) for each in programs),
        repeats=np.array([float(pool.operator.repeats) for pool in pools]),
        flops=np.array([pool.operator.flops for pool in pools]),
        kinds=tuple(pool.operator.kind for pool in pools),
        sizes=tuple(np.log2(np.array(task.sizes, np.float64) + 1) for task in recorded.tasks),
        recorded=recorded,
    )


def hidden(inputs: ProgramInputs) -> ProgramInputs:
    """Return programs whose tasks are not known: a live operator is a function of TIR, which has
    statements and no named sizes."""
    return replace(inputs, tasks=(None,) * len(inputs.tasks))


@dataclass(frozen=True)
class TransferPlan:
    """What of a network is measured."""

    share: float
    """Of FLOP that the operators that are tuned make up."""
    tried: int
    """Candidates of each of them that are measured; 0: all."""
    measured: int
    """Candidates of each other operator that are measured; 0: the first is taken as it is."""


@dataclass(frozen=True)
class TransferOutcome:
    """A network of which only the heavy operators are tuned."""

    latency: float
    """Over that of full tuning."""
    time: float
    """Over that of full tuning: measuring, and drawing and scoring of candidates."""
    tuned: int
    """Operators."""


def outcome(
    pools: TunedPools, plan: TransferPlan, arm: str, rng: np.random.Generator
) -> TransferOutcome:
    """Return what a network has when its heavy operators are tuned and the others reuse, by an arm
    of `ARMS`."""
    heavy = pools.heavy(plan.share)
    tried = {k: _tried(pools, k, plan.tried, arm, rng) for k in heavy}
    order = _order_of(arm, pools, tried, rng)
    rest = [k for k in range(len(pools.seconds)) if k not in tried]
    chosen = tried | {k: order(k)[: max(plan.measured, 1)] for k in rest}
    timed = chosen if plan.measured else tried
    read = [] if arm in UNGUIDED else rest
    read = [*read, *(heavy if plan.tried and arm != NO_TUNER else ())]
    latency = sum(pools.repeats[k] * pools.seconds[k][rows].min() for k, rows in chosen.items())
    time = sum(float(pools.spent[k][rows].sum()) for k, rows in timed.items())
    time += SECONDS_A_CANDIDATE * sum(len(pools.seconds[k]) for k in read)
    return TransferOutcome(float(latency) / pools.full_latency, time / pools.full_time, len(heavy))


def _tried(
    pools: TunedPools, k: int, count: int, arm: str, rng: np.random.Generator
) -> Int64[np.ndarray, "J"]:
    """Rows of a tuned operator's candidates that are measured."""
    if not count:
        return np.arange(len(pools.seconds[k]))
    order = rng.permutation(len(pools.seconds[k])) if arm == NO_TUNER else pools.order(k)
    return order[:count]


Order = Callable[[int], Int64[np.ndarray, "S"]]
"""Returns the rows of an operator's candidates, the first to be reused first."""


def _order_of(
    arm: str,
    pools: TunedPools,
    tried: Mapping[int, Int64[np.ndarray, "J"]],
    rng: np.random.Generator,
) -> Order:
    if arm == ATTENTION:
        memory = memory_of(pools, tried)
        return lambda k: np.argsort(-memory.throughputs(pools.states[k], TEMPERATURE))
    if arm == OWN:
        return pools.order
    if arm in UNGUIDED:
        return lambda k: rng.permutation(len(pools.seconds[k]))
    return lambda k: _near(pools, _source(arm, pools, list(tried), k, rng), tried, k)


def memory_of(pools: TunedPools, tried: Mapping[int, Int64[np.ndarray, "J"]]) -> AttentionMemory:
    """Return what was measured of the tuned operators, rows by operator."""
    return AttentionMemory.of(
        [pools.states[k][rows] for k, rows in tried.items()],
        [pools.seconds[k][rows] for k, rows in tried.items()],
        list(tried),
    )


def _near(
    pools: TunedPools, source: int, tried: Mapping[int, Int64[np.ndarray, "J"]], k: int
) -> Int64[np.ndarray, "S"]:
    """Rows by the distance of their features from the best known candidate of another operator."""
    rows = tried[source]
    best = pools.features[source][rows[np.argmin(pools.seconds[source][rows])]]
    every = np.concatenate(pools.features)
    deviation = every.std(0)
    scaled = (pools.features[k] - best) / np.where(deviation > 0, deviation, 1.0)
    return np.argsort(np.square(scaled).sum(1), kind="stable")


def _source(
    arm: str, pools: TunedPools, heavy: Sequence[int], k: int, rng: np.random.Generator
) -> int:
    """The tuned operator whose best candidate another one follows: drawn, or nearest in shape or
    in FLOP, of one kind if there is any."""
    if arm == CHANCE:
        return int(rng.choice(list(heavy)))
    alike = [j for j in heavy if pools.kinds[j] == pools.kinds[k]]
    shapes = [j for j in alike if len(pools.sizes[j]) == len(pools.sizes[k])]
    if arm == SHAPE and shapes:
        return min(shapes, key=lambda j: float(np.abs(pools.sizes[j] - pools.sizes[k]).sum()))
    return min(alike or heavy, key=lambda j: abs(np.log(pools.flops[j] / pools.flops[k])))
