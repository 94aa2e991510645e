"""Rivals of CDMPP: what they read, that they learn, and their errors."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np
import pytest

from experiments.programs.rivals.boosted_programs import (
    LightgbmPrograms,
    XgboostConfig,
    XgboostPrograms,
)
from experiments.programs.rivals.network_rival import RivalRun
from experiments.programs.rivals.recursive_lstm import (
    CLOSE,
    LEAF,
    RecursiveLstm,
    RecursiveSizes,
    tree_of,
)
from experiments.programs.rivals.summed_mlp import MlpSizes, SummedMlp
from experiments.programs.rivals.tlp import ARGUMENTS, KINDS, TlpPrograms, TlpSizes, primitive_rows
from go_rl.core import TrainingError
from go_rl.costs.programs.learn.code_inputs import SUMMED_NAMES, summed_program_features
from tests.costs.programs.test_program_contracts import LIGHTGBM, ProgramContract, TreeContract
from tests.costs.programs.with_nests import trace_of, with_nests_and_traces

RUN = RivalRun(steps=300, learning_rate=1e-2, batch=8, weight_decay=0.0)
SIZES = {
    SummedMlp: MlpSizes((8,)),
    RecursiveLstm: RecursiveSizes((8,), 8, (8,)),
    TlpPrograms: TlpSizes(16, 2, 1, (16,)),
}


@cache
def examples():
    return with_nests_and_traces()


def test_summed_features_are_sums_and_the_target():
    inputs = examples().inputs
    table = summed_program_features(inputs)
    first, end = inputs.asts.first_leaf[1:3]
    assert table.shape == (8, len(SUMMED_NAMES))
    assert table[1, 0] == pytest.approx(inputs.asts.vectors[first:end, 0].sum())
    assert table[0, -1] == inputs.devices[0, -1]


def test_events_of_a_tree():
    """for a: (for b: x), y; then z: the inner loop closes before y, the outer one before z."""
    shape = ((0, False), (1, False), (2, True), (1, True), (0, True))
    tree = tree_of(shape)
    assert tree.events.tolist() == [
        [LEAF, 2, 0], [CLOSE, 2, 0], [LEAF, 1, 1], [CLOSE, 1, 0], [LEAF, 0, 2],
    ]  # fmt: skip
    assert tree.positions.tolist() == [2, 4, 6]  # each leaf is followed by -1
    assert tree.levels == 3


def test_primitives_of_a_schedule():
    """Three calls say something; a tile's decision is log2(1 + 4), twice."""
    rows = primitive_rows(trace_of(2))
    assert rows[:, : len(KINDS)].argmax(axis=1).tolist() == [
        KINDS.index(name) for name in ("sample_perfect_tile", "split", "vectorize")
    ]
    # loop=l0, n=2, max_innermost_factor=64, decision=[4, 4]
    said = rows[0, len(KINDS) :].reshape(ARGUMENTS, 2)[:5]
    constants = [0.0, np.log2(3), np.log2(65), np.log2(5), np.log2(5)]
    assert said[:, 0] == pytest.approx(constants)
    assert said[:, 1] == pytest.approx([1 / 64, 0, 0, 0, 0])


@pytest.mark.parametrize(
    ("kind", "field", "message"),
    [
        (RecursiveLstm, "nests", "a recursive LSTM reads whole loop nests, and of these"),
        (TlpPrograms, "traces", "TLP reads schedule primitives, and of these programs only"),
    ],
)
def test_a_rival_says_what_it_lacks(kind, field, message):
    bare = replace(examples(), inputs=replace(examples().inputs, **{field: ()}))
    with pytest.raises(TrainingError, match=message):
        kind.fit(bare, RUN, SIZES[kind])


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: RivalRun(batch=7), "batch must be one of 8, 32, 128, 512, not 7"),
        (lambda: RivalRun(loss="msee"), "no loss 'msee'; did you mean 'mse'"),
        (lambda: MlpSizes(()), "there must be one"),
        (lambda: TlpSizes(units=10, heads=4), r"units \(10\) must be a multiple of heads"),
        (lambda: RecursiveSizes(units=0), "sizes must be >= 1"),
        (lambda: XgboostConfig(trees=0), "trees must be >= 1, not 0"),
    ],
)
def test_bad_configuration(make, message):
    with pytest.raises(TrainingError, match=message):
        make()


class NetworkContract(ProgramContract):
    """Eight programs, learned by heart."""

    examples = staticmethod(cache(with_nests_and_traces))

    def fitted(self):
        return _network(self.kind)

    def unfitted(self):
        return replace(self.fitted(), params=None)


@cache
def _network(kind: Any) -> Any:
    slow = replace(RUN, steps=600, schedule="constant")  # one number tells schedules apart
    return kind.fit(with_nests_and_traces(), slow if kind is TlpPrograms else RUN, SIZES[kind])


class TestSummedMlp(NetworkContract):
    kind = SummedMlp


class TestRecursiveLstm(NetworkContract):
    kind = RecursiveLstm

    def test_order_of_programs_does_not_matter(self):
        order = np.random.default_rng(0).permutation(8)
        found = self.fitted().predict(self.inputs().take(order))
        assert found == pytest.approx(self.fitted().predict(self.inputs())[order], rel=1e-5)


class TestTlp(NetworkContract):
    kind = TlpPrograms


class TestXgboost(TreeContract):
    kind, library = XgboostPrograms, "xgboost"
    config = XgboostConfig(trees=30, learning_rate=0.3, row_share=1.0)


class TestLightgbm(TreeContract):
    kind, library, config = LightgbmPrograms, "lightgbm", LIGHTGBM
