"""`network_latency`: seconds of a network from its tensor programs, replayed on one core.

CDMPP, section 5.5 and algorithm 2: nodes are calls of compiled functions, each predicted once; the
replayer executes them in topological order.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Protocol, runtime_checkable

import numpy as np
from jaxtyping import Bool, Float64, Int64

from go_rl.core import TrainingError
from go_rl.costs.operators.launches.launch_replay import Operators, replay
from go_rl.costs.programs.features import compact_ast
from go_rl.costs.programs.learn.examples import ProgramInputs, programs_of_nests
from go_rl.costs.programs.learn.predictor import ProgramPredictions
from go_rl.costs.programs.measure.data import ProgramTarget
from go_rl.costs.programs.nests import LoopNest, nest_parts, nest_to_json

DEFAULT, TUNED = "default", "tuned"
"""Schedules: the loops as TVM generates them; the best candidate of ``go-rl tune programs``."""
CALL_GAP = 1e-6
"""Seconds between two calls of a compiled network: TVM's virtual machine takes operands and
allocates the result."""


@runtime_checkable
class PricesPrograms(Protocol):
    """Predictor of the seconds of tensor programs, with an interval."""

    def interval(self, inputs: ProgramInputs) -> ProgramPredictions:
        """Return predictions, bounds and flags."""
        ...

    def knows(self, leaves: int) -> bool:
        """Return whether programs of so many leaves can be predicted."""
        ...


@dataclass(frozen=True)
class NetworkProgram:
    """A function of a compiled network: an operator, or fused ones, under a schedule."""

    name: str
    """Operators and shapes, for people."""
    schedule: str = DEFAULT
    nest: LoopNest | None = None
    """Loops of the function; None: they are not understood, see ``reason``."""
    reason: str = ""
    """Reason why there is no loop nest; "": there is one."""
    machine: tuple[float, ...] = ()
    """Numbers of its machine code (`MACHINE_NAMES`); none: it was not read."""
    exact: bool = True
    """Whether all of its arrays are of float32; others count as such in the nest."""


@dataclass(frozen=True, eq=False)
class NetworkPrograms:
    """``F`` functions of a network and its ``N`` calls of them."""

    programs: tuple[NetworkProgram, ...]
    """[F] functions of the network, as programs."""
    called: Int64[np.ndarray, "N"]
    """[N] function of each call, in the order of execution."""
    before: tuple[tuple[int, ...], ...]
    """[N] calls that each one waits for."""
    target: ProgramTarget


@dataclass(frozen=True, eq=False)
class NetworkLatency:
    """Prices of ``F`` functions, and the network's."""

    seconds: Float64[np.ndarray, "F"]
    """[F] of one call; NaN: it has no price, see ``reasons``."""
    low: Float64[np.ndarray, "F"]
    high: Float64[np.ndarray, "F"]
    """[F] bounds of a 90 % interval."""
    unlike: Bool[np.ndarray, "F"]
    """[F] whether it is unlike what was learned from."""
    reasons: tuple[str, ...]
    """[F] reason why a function has no price; "": it has one."""
    total: tuple[float, float, float]
    """Seconds of the network and bounds, all functions without a price left out. The bounds are
    those of all functions at once, as if all predictions were off alike."""


def network_latency(
    network: NetworkPrograms, predictor: PricesPrograms, gap: float = CALL_GAP
) -> NetworkLatency:
    """Return the seconds of a network on one core.

    A function whose number of statements the predictor does not know is the sum of its outermost
    loops, which run one after the other.

    Args:
        network: functions and calls.
        predictor: of seconds on the network's target.
        gap: seconds between two calls.

    Raises:
        ReplayError: calls wait for each other in a circle.
    """
    parts, reasons = [], []
    for program in network.programs:
        some, reason = _parts(program, predictor)
        parts.append(some)
        reasons.append(reason)
    owner = np.repeat(np.arange(len(parts)), [len(some) for some in parts])
    found = _predicted([nest for some in parts for nest in some], owner, network, predictor)
    seconds, low, high = (
        np.bincount(owner, each, len(parts)).astype(np.float64)
        for each in (found.seconds, found.low, found.high)
    )
    unlike = np.bincount(owner, found.unlike, len(parts)) > 0
    unlike |= np.array([not program.exact for program in network.programs], np.bool_)
    total = (
        replayed(network, seconds, gap), replayed(network, low, gap), replayed(network, high, gap)
    )  # fmt: skip
    known = np.array([1.0 if not reason else np.nan for reason in reasons])
    return NetworkLatency(
        known * seconds, known * low, known * high, unlike, tuple(reasons), total
    )  # fmt: skip


def replayed(
    network: NetworkPrograms, seconds: Float64[np.ndarray, "F"], gap: float = CALL_GAP
) -> float:
    """Return the seconds of a network whose functions take so long, 0 where they are not known."""
    called = network.called
    device = np.zeros(len(called), np.int64)
    return replay(Operators(seconds[called], network.before, device, gap)).seconds


def _parts(program: NetworkProgram, predictor: PricesPrograms) -> tuple[tuple[LoopNest, ...], str]:
    """The loop nests by which a program is priced, and the reason why there is none."""
    if program.nest is None:
        return (), program.reason
    if predictor.knows(compact_ast(program.nest).num_leaves):
        return (program.nest,), ""
    parts = nest_parts(program.nest)
    counts = [compact_ast(part).num_leaves for part in parts]
    strange = [count for count in counts if not predictor.knows(count)]
    if strange:
        return (), f"a loop has {max(strange)} statements, and the weights know none of so many"
    return parts, ""


def _predicted(
    nests: Sequence[LoopNest],
    owner: Int64[np.ndarray, "P"],
    network: NetworkPrograms,
    predictor: PricesPrograms,
) -> ProgramPredictions:
    if not nests:
        nothing = np.zeros(0)
        return ProgramPredictions(nothing, nothing, nothing, nothing, np.zeros(0, np.bool_))
    machine = {
        (nest_to_json(each.nest), network.target.codegen): each.machine
        for each in network.programs
        if each.nest is not None and each.machine
    }
    inputs = programs_of_nests(nests, network.target, owner)
    return predictor.interval(replace(inputs, machine=machine))


def check_priced(network: NetworkPrograms, prices: NetworkLatency) -> None:
    """Raise a `TrainingError` where no function of a network has a price."""
    if not any(not reason for reason in prices.reasons):
        told = dict.fromkeys(prices.reasons)
        raise TrainingError(
            f"none of the {len(network.programs)} functions has a price: {'; '.join(told)}"
        )
