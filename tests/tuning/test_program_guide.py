"""`ProgramGuide`: candidates ranked by a predictor of programs, which learns from their trials."""

from collections.abc import Sequence
from functools import cache

import numpy as np
import pytest

from go_rl.core import CheckpointError
from go_rl.costs.programs.learn.code_trees import CodeTrees
from go_rl.costs.programs.learn.examples import ProgramExamples, programs_of_nests
from go_rl.costs.programs.measure.data import ProgramTarget
from go_rl.costs.programs.nests import LoopNest, LoopVariable
from go_rl.costs.programs.nests.nest import Access, ForLoop, NestBuffer, Statement
from go_rl.costs.trees.boosted import BoostedConfig
from go_rl.tuning.config import TuneProgramsConfig, TuningError
from go_rl.tuning.loop.nouns import Candidate
from go_rl.tuning.tuners.program_guide import ProgramGuide
from go_rl.tuning.tvm.tune_network import deciders
from tests.tuning.lattice import Lattice, tune

TARGET = ProgramTarget("cpu", "x86-64-v3")
FEW = BoostedConfig(trees=40, leaves=8, learning_rate=0.2, least_rows=1, column_share=1.0)
SIDES = (6, 6, 6)
NAMES = ("annealing", "evolution", "chameleon")


def nest_at(point: Sequence[int]) -> LoopNest:
    """Return a copy in three loops, as long as 2 to the coordinates."""
    index = tuple(LoopVariable(k) for k in range(3))
    shape = tuple(2**at for at in point)
    inner: ForLoop | Statement = Statement(Access(0, index), (Access(1, index),))
    for size in reversed(shape):
        inner = ForLoop(size, "serial", (inner,))
    return LoopNest((NestBuffer("b", shape), NestBuffer("a", shape)), (inner,))


class ProgramLattice(Lattice):
    """A lattice whose points are loop nests; those of a first number 0 are not understood."""

    def nests(self, candidates: Sequence[Candidate]) -> list[LoopNest | None]:
        return [nest_at(each.document) if each.document[0] else None for each in candidates]

    def adapted(self, document) -> Candidate | None:
        return None


def space() -> ProgramLattice:
    return ProgramLattice(SIDES, (4, 1, 3))


@cache
def trees(optimum: tuple[int, int, int] = (4, 1, 3)) -> CodeTrees:
    """Return trees that learned a third of the points of a lattice."""
    pytest.importorskip("lightgbm", reason="an extra: pip install 'go_rl[trees]'")
    lattice = ProgramLattice(SIDES, optimum)
    points = [lattice.at(point) for point in np.ndindex(SIDES) if point[0] and sum(point) % 3 == 0]
    nests = [nest_at(each.document) for each in points]
    inputs = programs_of_nests(nests, TARGET, np.arange(len(nests)) % 12)
    seconds = np.array([lattice.seconds(each) for each in points])
    return CodeTrees.fit(ProgramExamples(inputs, seconds, 0 * seconds), FEW)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["annealing", "evolution"])
def test_a_predictor_that_knows_the_seconds_finds_the_best_soon(name):
    lattice = space()
    tuner = ProgramGuide(trees(), TARGET).tuners(name)(lattice, 0)
    assert tune(tuner, lattice, 60, 4) <= 24  # by chance, 108 of 216 in the median


def test_what_is_not_understood_comes_last():
    guide = ProgramGuide(trees(), TARGET)
    found = guide.scores(
        space().nests([Candidate("", p) for p in ([0, 1, 1], [4, 1, 3], [1, 5, 5])])
    )
    assert found[0] > found[2] > found[1]
    assert np.isfinite(guide.scores([None, None])).all()


def test_spaces_without_loop_nests_and_random_tuners_are_refused():
    guide = ProgramGuide(trees(), TARGET)
    with pytest.raises(TuningError, match="guides spaces of programs alone"):
        guide.tuners("annealing")(Lattice(), 0)
    with pytest.raises(TuningError, match="'random' takes no predictor: leave out --guide"):
        guide.tuners("random")


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
def test_guides_by_name_read_their_weights(name):
    shipped = TuneProgramsConfig(guide="transfer", tuner=name)
    _, make = deciders(shipped)
    assert len(make(space(), 0).propose(2)) == 2


def test_weights_of_another_guide_are_one_clear_error(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    with pytest.raises(TuningError, match="holds weights of cdmpp: set guide to 'cdmpp'"):
        deciders(TuneProgramsConfig(guide="transfer", weights="programs-5-cdmpp"))
    with pytest.raises(
        TuningError, match=r"nothing is known of this machine's programs; run go-rl"
    ):
        deciders(TuneProgramsConfig(guide="code-trees"))
    with pytest.raises(CheckpointError, match="no weights of tensor programs 'programs-9'"):
        deciders(TuneProgramsConfig(guide="cdmpp", weights="programs-9"))
