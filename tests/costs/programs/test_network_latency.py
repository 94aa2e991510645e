"""`network_latency`: functions priced once, calls replayed on one core."""

from dataclasses import dataclass, field

import numpy as np
import pytest

from go_rl.core import TrainingError
from go_rl.costs.programs.learn.predictor import ProgramPredictions
from go_rl.costs.programs.measure.data import ProgramTarget
from go_rl.costs.programs.nests import Access, ForLoop, LoopNest, NestBuffer, Statement
from go_rl.costs.programs.network_latency import (
    NetworkProgram,
    NetworkPrograms,
    check_priced,
    network_latency,
)
from tests.costs.programs.made_up import nest_of

GAP = 1e-3
CPU = ProgramTarget("cpu", "x86-64-v3")


@dataclass
class LeavesPredictor:
    """A second for each statement, between half of it and twice; two statements are unlike."""

    counts: tuple[int, ...] = (1, 2)
    asked: list[int] = field(default_factory=list)

    def interval(self, inputs):
        self.asked.append(inputs.num_programs)
        seconds = inputs.leaves.astype(np.float64)
        unlike = inputs.leaves == 2
        return ProgramPredictions(seconds, seconds / 2, 2 * seconds, 0 * seconds, unlike)

    def knows(self, leaves):
        return leaves in self.counts


def network(*programs: NetworkProgram) -> NetworkPrograms:
    """Return a network that calls its first function twice and each other one once, in a row."""
    called = np.array([0, *range(len(programs))], np.int64)
    before = ((), *((i,) for i in range(len(programs))))
    return NetworkPrograms(programs, called, before, CPU)


def _three_rows() -> LoopNest:
    """Three loops in a row, of one, one and two statements that write buffers of their own."""
    written = iter(range(4))
    rows = tuple(
        ForLoop(4, "serial", tuple(Statement(Access(next(written), (0,))) for _ in range(count)))
        for count in (1, 1, 2)
    )
    return LoopNest(tuple(NestBuffer(f"b{i}", (4,)) for i in range(4)), rows)


def test_each_function_is_priced_once_and_each_call_counts():
    predictor = LeavesPredictor()
    found = network_latency(
        network(NetworkProgram("a", nest=nest_of(1)), NetworkProgram("b", nest=nest_of(2))),
        predictor, GAP,
    )  # fmt: skip
    assert predictor.asked == [2]
    assert found.seconds.tolist() == [1.0, 2.0]
    assert found.unlike.tolist() == [False, True]
    assert found.total == pytest.approx((4 + 3 * GAP, 2 + 3 * GAP, 8 + 3 * GAP))


def test_more_statements_than_the_weights_know_are_priced_loop_by_loop():
    found = network_latency(network(NetworkProgram("a", nest=_three_rows())), LeavesPredictor())
    assert found.seconds.tolist() == [4.0]
    assert found.reasons == ("",)
    whole = network_latency(
        network(NetworkProgram("a", nest=_three_rows())), LeavesPredictor((1, 2, 4))
    )
    assert whole.seconds.tolist() == [4.0]
    assert whole.unlike.tolist() == [False]


def test_functions_without_a_price_say_why_and_are_in_no_sum():
    programs = (
        NetworkProgram("a", nest=nest_of(1)), NetworkProgram("b", reason="its index is data"),
        NetworkProgram("c", nest=nest_of(3)),
    )  # fmt: skip
    found = network_latency(network(*programs), LeavesPredictor(), 0.0)
    assert found.seconds[0] == 1.0
    assert np.isnan(found.seconds[1:]).all()
    assert found.reasons == (
        "", "its index is data", "a loop has 3 statements, and the weights know none of so many",
    )  # fmt: skip
    assert found.total == pytest.approx((2, 1, 4))


def test_a_network_without_any_price_is_an_error():
    bare = network(NetworkProgram("a", reason="its index is data"))
    prices = network_latency(bare, LeavesPredictor())
    with pytest.raises(TrainingError, match="none of the 1 functions has a price: its index is"):
        check_priced(bare, prices)
