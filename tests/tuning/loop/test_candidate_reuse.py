"""Networks of which only the heavy operators are tuned."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np
import pytest

from go_rl.costs.programs.learn.examples import ProgramInputs
from go_rl.costs.programs.learn.transfer.tuner import TransferTuner
from go_rl.costs.programs.measure.data import ProgramTarget
from go_rl.costs.programs.nests import (
    Access,
    ForLoop,
    LoopNest,
    NestBuffer,
    Statement,
    nest_from_json,
)
from go_rl.tuning.config import TuningError
from go_rl.tuning.loop.journal import FileJournal, MemoryJournal
from go_rl.tuning.loop.nouns import Candidate, Trial, TunedOperator
from go_rl.tuning.loop.reuse.attention_reuse import AttentionReuse
from go_rl.tuning.loop.schedulers import SCHEDULERS, scheduler_of
from go_rl.tuning.loop.schedulers.registry import WITH_BELIEF
from go_rl.tuning.loop.slot_loop import tune_operators
from go_rl.tuning.loop.slots import SlotConfig
from go_rl.tuning.loop.tuning_state import heavy_operators
from go_rl.tuning.pools.replay import ReplayBackend
from go_rl.tuning.tvm.tune_network import TRANSFER_WEIGHTS
from tests.tuning.lattice import Lattice
from tests.tuning.toy_pools import InOrder, pool, pool_set, tune

TARGET = ProgramTarget("cpu", "x86-64-v4")


def operators(*flops: tuple[int, float]) -> list[TunedOperator]:
    return [TunedOperator(f"conv2d {k}", f"w{k}", n, each) for k, (n, each) in enumerate(flops)]


@pytest.mark.parametrize(
    ("share", "heavy"), [(0.3, (1,)), (0.5, (1,)), (0.6, (1, 2)), (0.8, (1, 2)), (1.0, (0, 1, 2))]
)
def test_heavy_operators_are_the_fewest_that_make_up_a_share(share, heavy):
    """FLOP 2, 5 = 5 x 1 and 3: of 10 in all."""
    assert heavy_operators(operators((1, 2.0), (5, 1.0), (1, 3.0)), share) == heavy


POOLS = pool_set(
    pool("conv2d a", 1, 8e7, [8e-3, 4e-3, 2e-3, 1e-3, 1e-3, 1e-3, 1e-3, 1e-3]),
    pool("conv2d b", 2, 1e7, [6e-3, 5e-3, 3e-3, 9e-3]),
)


class LastOf:
    """Reuses the candidates of `POOLS` from the last on, and notes what it was told."""

    def __init__(self) -> None:
        self.told: list[tuple[int, dict[int, int]]] = []

    def choose(
        self, operator: int, measured: Mapping[int, Sequence[Trial]], count: int, seed: int
    ) -> list[Candidate]:
        self.told.append((operator, {k: len(trials) for k, trials in measured.items()}))
        keys = POOLS.pools[operator].keys.tolist()[::-1][:count]
        return [Candidate(f"{key:016x}") for key in keys]


def tuned(name: str, journal=None, seconds: float = 100.0, trials: int | None = None):
    reuse, limits = LastOf(), {"seconds": seconds, "trials": trials}
    return tune(POOLS, name, journal, reuse, heavy=0.7, **limits), reuse


@pytest.mark.parametrize("name", [name for name in SCHEDULERS if name not in WITH_BELIEF])
def test_light_operators_get_one_batch_at_the_end(name):
    journal = MemoryJournal()
    state, reuse = tuned(name, journal)
    assert journal.kept[-1].phase == "reuse"
    assert [batch.operator for batch in journal.kept] == [0] * (len(journal.kept) - 1) + [1]
    assert reuse.told == [(1, {0: 7})]  # the best is the fourth; three are no better
    assert state.latency == pytest.approx(1e-3 + 2 * 3e-3)
    assert state.waiting == []


def test_time_for_the_last_batches_is_kept_and_a_stopped_run_goes_on(tmp_path):
    """Of 7 s at 1 s a trial, the batch of 2 keeps 2: slots end behind 5 trials."""
    about = {"seed": 0}
    whole, _ = tuned("dynamic-round-robin", FileJournal(tmp_path / "a.jsonl", about), 7.0)
    assert (whole.trials, whole.elapsed) == (7, 7.0)
    lines = (tmp_path / "a.jsonl").read_text().splitlines(keepends=True)
    (tmp_path / "a.jsonl").write_text("".join(lines[:-1]))
    again, reuse = tuned("dynamic-round-robin", FileJournal(tmp_path / "a.jsonl", about), 7.0)
    assert again.summary() == whole.summary()
    assert reuse.told == [(1, {0: 5})]
    _, reuse = tuned("dynamic-round-robin", FileJournal(tmp_path / "a.jsonl", about), 7.0)
    assert reuse.told == []


@pytest.mark.parametrize(("trials", "heavy"), [(6, 4), (4, 2), (3, 1), (2, 1), (1, 1)])
def test_trials_for_the_last_batches_are_kept(trials, heavy):
    """A batch of 2; the first candidate that works comes before."""
    state, _ = tuned("dynamic-round-robin", trials=trials)
    assert [len(each.curve) for each in state.operators] == [heavy, trials - heavy]


def test_somebody_must_choose_for_light_operators():
    with pytest.raises(TuningError, match="say which candidates"):
        tune_operators(
            ReplayBackend(POOLS), scheduler_of("round-robin"), InOrder, SlotConfig(heavy=0.5)
        )


def nest_of_point(point: Sequence[int]) -> LoopNest:
    """Return a statement in loops as long as the coordinates, and one."""
    inner: ForLoop | Statement = Statement(Access(0, (0,)))
    for at in reversed(point):
        inner = ForLoop(at + 1, "serial", (inner,))
    return LoopNest((NestBuffer("b", (1,)),), (inner,))


def point_of_nest(text: str) -> list[int]:
    return [loop.extent - 1 for loop in nest_from_json(text).loops]


class ReadLattice(Lattice):
    """A lattice whose points are programs of one statement; those with a first number above 5 are
    not understood, and others' points fit where they lie inside."""

    def nests(self, candidates: Sequence[Candidate]) -> list[LoopNest | None]:
        points = [each.document for each in candidates]
        return [None if point[0] > 5 else nest_of_point(point) for point in points]

    def adapted(self, document) -> Candidate | None:
        fits = all(at < side for at, side in zip(document, self.sides, strict=True))
        return self.at(document) if fits else None


class PointReader:
    """The state of a program is its point, seen from the middle of the lattice."""

    def states(self, inputs: ProgramInputs) -> np.ndarray:
        points = [point_of_nest(inputs.nests[i]) for i in inputs.nest.tolist()]
        return np.array(points, np.float32) - np.float32(2.9)


def reuse_of(*spaces: ReadLattice) -> AttentionReuse:
    return AttentionReuse(spaces.__getitem__, PointReader(), TARGET, drawn=6)


def trials(space: ReadLattice, *points: tuple[int, int, int]) -> list[Trial]:
    made = [space.at(point) for point in points]
    return [Trial(candidate, space.seconds(candidate), 1.0) for candidate in made]


def test_the_best_candidate_of_another_operator_leads_where_it_fits():
    space = ReadLattice()
    measured = {0: trials(space, (5, 1, 4), (0, 6, 0), (5, 6, 0), (1, 6, 6))}
    chosen = reuse_of(space, ReadLattice()).choose(1, measured, 3, 0)
    assert "5,1,4" in [candidate.key for candidate in chosen]
    assert np.abs(np.subtract(chosen[0].document, (5, 1, 4))).sum() <= 1
    assert len({candidate.key for candidate in chosen}) == 3
    assert chosen == reuse_of(space, ReadLattice()).choose(1, measured, 3, 0)
    small = ReadLattice((3, 3, 3), (1, 1, 1))
    found = reuse_of(space, small).choose(1, measured, 9, 0)
    assert all(max(candidate.document) < 3 for candidate in found)


def test_programs_that_are_not_understood_are_left_out():
    space = ReadLattice()
    measured = {0: trials(space, (6, 1, 4), (5, 1, 4), (5, 2, 4))}
    chosen = reuse_of(space, ReadLattice()).choose(1, measured, 20, 0)
    assert all(candidate.document[0] <= 5 for candidate in chosen)
    measured = {0: trials(space, (6, 1, 4), (6, 6, 4))}
    assert reuse_of(space, ReadLattice()).choose(1, measured, 2, 0)[0].key == "6,1,4"


def test_failed_trials_are_no_source():
    space = ReadLattice()
    failed = [replace(each, seconds=None, reason="it crashed") for each in trials(space, (5, 1, 4))]
    chosen = reuse_of(space, ReadLattice()).choose(1, {0: failed}, 4, 0)
    assert len(chosen) == 4


def test_the_tuner_that_ships_can_be_read():
    tuner = TransferTuner.load(TRANSFER_WEIGHTS)
    assert (tuner.sizes.units, tuner.sizes.lstm_layers, tuner.sizes.heads) == (32, 3, 2)
