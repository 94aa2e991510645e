"""Networks of which only the heavy operators are tuned."""

from collections.abc import Mapping, Sequence

import pytest

from go_rl.costs.programs.nests import (
    Access,
    ForLoop,
    LoopNest,
    NestBuffer,
    Statement,
)
from go_rl.tuning.config import TuneProgramsConfig, TuningError
from go_rl.tuning.loop.journal import MemoryJournal
from go_rl.tuning.loop.nouns import Candidate, Trial, TunedOperator
from go_rl.tuning.loop.schedulers import SCHEDULERS, scheduler_of
from go_rl.tuning.loop.schedulers.registry import WITH_BELIEF
from go_rl.tuning.loop.slot_loop import tune_operators
from go_rl.tuning.loop.slots import SlotConfig
from go_rl.tuning.pools.replay import ReplayBackend
from tests.tuning.lattice import Lattice
from tests.tuning.toy_pools import InOrder, paths_of, pool, pool_set


def operators(*flops: tuple[int, float]) -> list[TunedOperator]:
    return [TunedOperator(f"conv2d {k}", f"w{k}", n, each) for k, (n, each) in enumerate(flops)]


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


def tune(name: str, journal=None, seconds: float = 100.0, trials: int | None = None):
    config = SlotConfig(
        seconds=seconds, trials=trials, batch=2, patience=3, slot=2.0, heavy=0.7,
    )  # fmt: skip
    reuse = LastOf()
    state = tune_operators(
        ReplayBackend(POOLS), scheduler_of(name, paths=paths_of(POOLS)), InOrder, config,
        journal=journal, reuse=reuse,
    )  # fmt: skip
    return state, reuse


@pytest.mark.parametrize("name", [name for name in SCHEDULERS if name not in WITH_BELIEF])
def test_light_operators_get_one_batch_at_the_end(name):
    journal = MemoryJournal()
    state, reuse = tune(name, journal)
    assert journal.kept[-1].phase == "reuse"
    assert [batch.operator for batch in journal.kept] == [0] * (len(journal.kept) - 1) + [1]
    assert reuse.told == [(1, {0: 7})]  # the best is the fourth; three are no better
    assert state.latency == pytest.approx(1e-3 + 2 * 3e-3)
    assert state.waiting == []


def nest_of_point(point: Sequence[int]) -> LoopNest:
    """Return a statement in loops as long as the coordinates, and one."""
    inner: ForLoop | Statement = Statement(Access(0, (0,)))
    for at in reversed(point):
        inner = ForLoop(at + 1, "serial", (inner,))
    return LoopNest((NestBuffer("b", (1,)),), (inner,))


class ReadLattice(Lattice):
    """A lattice whose points are programs of one statement; those with a first number above 5 are
    not understood, and others' points fit where they lie inside."""

    def nests(self, candidates: Sequence[Candidate]) -> list[LoopNest | None]:
        points = [each.document for each in candidates]
        return [None if point[0] > 5 else nest_of_point(point) for point in points]

    def adapted(self, document) -> Candidate | None:
        fits = all(at < side for at, side in zip(document, self.sides, strict=True))
        return self.at(document) if fits else None


def trials(space: ReadLattice, *points: tuple[int, int, int]) -> list[Trial]:
    made = [space.at(point) for point in points]
    return [Trial(candidate, space.seconds(candidate), 1.0) for candidate in made]


def test_a_share_out_of_range_is_refused():
    for share in (0.0, 1.5):
        with pytest.raises(TuningError, match=rf"only-heavy must lie in \(0, 1\], not {share}"):
            TuneProgramsConfig(only_heavy=share)
