"""Predictors of trees: what every one owes, and boosted sums over kernels."""

import sys
from abc import ABC, abstractmethod
from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np
import pytest
from costs.kernels.kernels import few_features, few_kernels, weights
from costs.kernels.ranks import learned, times
from costs.kernels.test_kernel_predictor import SMALL, data
from costs.operators.operators import toy_examples, toy_predictor
from rounding import assert_rounded_alike

from go_rl.core import CheckpointError, MissingDependencyError, TrainingError
from go_rl.costs.kernels.measure.data import plain_seconds
from go_rl.costs.kernels.predictor import KernelPredictor
from go_rl.costs.kernels.ranks.predictor import FlagRanks
from go_rl.costs.kernels.residuals import ResidualExamples, Residuals
from go_rl.costs.learning.metrics import ape, random_ape
from go_rl.costs.learning.predictor import Predictor
from go_rl.costs.operators.predictor import OperatorPredictor
from go_rl.costs.trees.boosted import BoostedConfig, BoostedTrees, SummedKernels, summed_features
from go_rl.costs.trees.candidate_ranks import (
    CandidateRanks,
    CandidateRanksConfig,
    MeasuredCandidates,
    TreeLoss,
)
from go_rl.graphs.cutting.opcode_names import vocabulary_of


def summed() -> np.ndarray:
    return summed_features(few_features(), len(vocabulary_of(few_kernels().graph.op_type)))


def test_features_are_sums_over_the_nodes_and_counts_of_opcodes():
    features, table = few_features(), summed()
    width = features.whole.shape[1]
    first, last = features.first_node[3], features.first_node[4]
    np.testing.assert_array_equal(table[3, :width], features.whole[3])
    inner = table[3, width : width + features.nodes.shape[1]]
    assert_rounded_alike(inner, features.nodes[first:last].sum(axis=0))
    assert table[3, width + features.nodes.shape[1] :].sum() == last - first


def mean_error(predicted: np.ndarray | np.floating, truth: np.ndarray) -> float:
    return float(np.abs(predicted - truth).mean())


class PredictorContract(ABC):
    """What a predictor must do; a subclass makes one."""

    kind: type[Predictor[Any, Any]]

    @abstractmethod
    def fitted(self) -> Predictor[Any, Any]:
        """One that learned from a toy set."""

    @abstractmethod
    def inputs(self, count: int | None = None) -> Any:
        """The inputs of the toy set; or the first ones."""

    def truth(self) -> np.ndarray:
        """What is to be predicted of the toy set; logarithms where that is seconds."""
        raise NotImplementedError

    def losses(self, predicted: np.ndarray) -> tuple[float, float]:
        """Losses on the toy set: of predictions, and of what knows nothing of the inputs."""
        truth = self.truth()
        if self.kind.unit == "seconds":
            predicted = np.log(predicted)
        return mean_error(predicted, truth), mean_error(np.median(truth), truth)

    @abstractmethod
    def unfitted(self) -> Predictor[Any, Any]:
        """One made by hand that learned nothing."""

    def test_learning_lowers_the_loss(self):
        predicted = self.fitted().predict(self.inputs())
        assert predicted.dtype == np.float64
        loss, blind = self.losses(predicted)
        assert loss < 0.7 * blind

    def test_the_same_predictions_come_from_its_file(self, tmp_path):
        path = tmp_path / "predictor.npz"
        self.fitted().save(path)
        again = self.kind.load(path)
        assert type(again) is self.kind
        for count in (None, 1):
            inputs = self.inputs(count)
            expected = self.fitted().predict(inputs)
            np.testing.assert_array_equal(again.predict(inputs), expected)

    def test_of_nothing_it_predicts_nothing(self):
        predicted = self.fitted().predict(self.inputs(0))
        assert (predicted.shape, predicted.dtype) == ((0,), np.float64)

    def test_its_words_and_unit_are_stated(self):
        assert self.kind.what
        assert self.kind.unit in ("seconds", "score", "log ratio")

    def test_one_that_learned_nothing_cannot_be_made(self):
        with pytest.raises(TrainingError, match=f"{self.kind.what}: nothing is learned yet"):
            self.unfitted()

    @pytest.mark.parametrize("content", [None, b"", b"nothing of the kind \xff"])
    def test_wrong_files_are_one_clear_error(self, content, tmp_path):
        path = tmp_path / "other.npz"
        if content is not None:
            path.write_bytes(content)
        with pytest.raises(CheckpointError, match="other"):
            self.kind.load(path)

    def test_the_file_of_another_predictor_is_one_clear_error(self, tmp_path):
        path = tmp_path / "other.npz"
        (learned() if self.kind is KernelPredictor else weights()).save(path)
        with pytest.raises(CheckpointError, match=rf"other\.npz: is no file of {self.kind.what}"):
            self.kind.load(path)

    def test_a_file_that_cannot_be_written_is_one_clear_error(self, tmp_path):
        (tmp_path / "folder").mkdir()
        with pytest.raises(CheckpointError, match="folder: cannot be written"):
            self.fitted().save(tmp_path / "folder")


@cache
def _kernel_predictor() -> KernelPredictor:
    return KernelPredictor.fit(data().take(np.arange(few_kernels().num_kernels - 1)), SMALL, 2)


class TestKernelPredictor(PredictorContract):
    kind = KernelPredictor

    def fitted(self):
        return _kernel_predictor()

    def inputs(self, count=None):
        size = few_kernels().num_kernels - 1 if count is None else count
        return few_kernels().take(np.arange(size))

    def truth(self):
        return np.log(plain_seconds(data())[:-1])

    def unfitted(self):
        return replace(weights(), networks=())


class TestFlagRanks(PredictorContract):
    kind = FlagRanks

    def fitted(self):
        return learned()

    def inputs(self, count=None):
        kernels = times().kernels
        return kernels.take(np.arange(kernels.num_kernels if count is None else count))

    def losses(self, predicted):
        seconds = times().seconds
        kernel = np.repeat(np.arange(len(seconds)), seconds.shape[1])
        return ape(predicted, seconds.ravel(), kernel), random_ape(seconds.ravel(), kernel)

    def unfitted(self):
        return replace(learned(), networks=())


@cache
def _boosted_trees() -> BoostedTrees:
    pytest.importorskip("lightgbm", reason="LightGBM is an extra: pip install 'go_rl[trees]'")
    config = BoostedConfig(trees=200, learning_rate=0.1, least_rows=2)
    return BoostedTrees.fit(SummedKernels(summed(), np.exp(summed()[:, 3].astype(float))), config)


class TestBoostedTrees(PredictorContract):
    kind = BoostedTrees

    @pytest.fixture(autouse=True)
    def _has_lightgbm(self):
        pytest.importorskip("lightgbm", reason="LightGBM is an extra: pip install 'go_rl[trees]'")

    def fitted(self):
        return _boosted_trees()

    def inputs(self, count=None):
        return summed()[:count]

    def truth(self):
        return summed()[:, 3]

    def unfitted(self):
        return BoostedTrees(None)


@cache
def _measured_candidates() -> MeasuredCandidates:
    """The farther two features are from 0.3, the slower; one in eight failed."""
    features = np.random.default_rng(0).uniform(size=(80, 3)).astype(np.float32)
    seconds = 1e-3 * (1.0 + 4.0 * np.abs(features[:, :2] - 0.3).sum(axis=1, dtype=np.float64))
    return MeasuredCandidates(features, np.where(np.arange(80) % 8 == 7, np.inf, seconds))


@cache
def _candidate_ranks(loss: TreeLoss) -> CandidateRanks:
    config = CandidateRanksConfig(loss, trees=40, depth=3, column_share=1.0)
    return CandidateRanks.fit(_measured_candidates(), config)


class TestCandidateRanks(PredictorContract):
    kind = CandidateRanks
    loss: TreeLoss = "regression"

    @pytest.fixture(autouse=True)
    def _has_xgboost(self):
        pytest.importorskip("xgboost", reason="XGBoost is an extra: pip install 'go_rl[tuning]'")

    def fitted(self):
        return _candidate_ranks(self.loss)

    def inputs(self, count=None):
        return _measured_candidates().features[:count]

    def losses(self, predicted):
        seconds, all_alike = _measured_candidates().seconds, np.zeros(80, np.int64)
        return ape(predicted, seconds, all_alike), random_ape(_timed(seconds), all_alike[:70])

    def unfitted(self):
        return CandidateRanks(None)

    def test_failed_candidates_are_ranked_behind_the_fast_ones(self):
        predicted, speed = self.fitted().predict(self.inputs()), _measured_candidates().speed
        assert speed[7] == 0.0
        assert speed.max() == 1.0
        assert predicted[np.argsort(-speed)[:10]].max() < predicted[speed == 0].mean()

    def test_nothing_is_learned_where_all_failed(self):
        failed = MeasuredCandidates(self.inputs(), np.full(80, np.inf))
        with pytest.raises(TrainingError, match="no candidate has a time"):
            CandidateRanks.fit(failed)

    def test_without_the_library_the_command_is_named(self, monkeypatch):
        monkeypatch.setitem(sys.modules, "xgboost", None)
        with pytest.raises(MissingDependencyError, match=r"pip install 'go_rl\[tuning\]'"):
            CandidateRanks.fit(_measured_candidates())


class TestCandidateRanksOfPairs(TestCandidateRanks):
    loss: TreeLoss = "rank"


def _timed(seconds: np.ndarray) -> np.ndarray:
    return seconds[np.isfinite(seconds)]


def _residual_examples() -> ResidualExamples:
    features = np.random.default_rng(0).normal(size=(60, 3))
    features[:, 1] = 7.0  # it never changes
    return ResidualExamples(features, np.sin(features[:, 0]))


@cache
def _residuals() -> Residuals:
    return Residuals.fit(_residual_examples())


class TestResiduals(PredictorContract):
    kind = Residuals

    def fitted(self):
        return _residuals()

    def inputs(self, count=None):
        return _residual_examples().features[:count]

    def truth(self):
        return _residual_examples().residual

    def unfitted(self):
        return replace(_residuals(), known=np.zeros((0, 3)), weights=np.zeros(0))


class TestOperatorPredictor(PredictorContract):
    kind = OperatorPredictor

    def fitted(self):
        return toy_predictor()

    def inputs(self, count=None):
        given = toy_examples().inputs
        return given if count is None else given.take(np.arange(count))

    def truth(self):
        return np.log(toy_examples().seconds)

    def unfitted(self):
        return replace(toy_predictor(), sheets=())
