"""The contract of predictors, for CDMPP, `CodeTrees` and `MachineTrees`."""

import json
from collections.abc import Callable
from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np
import pytest
from costs.trees.test_predictor import PredictorContract

from go_rl.core import TrainingError
from go_rl.costs.programs.learn.code_trees import CodeTrees, MachineTrees
from go_rl.costs.programs.learn.examples import ProgramExamples
from go_rl.costs.programs.learn.predictor import ProgramPredictor
from go_rl.costs.programs.learn.program_weights import shipped_devices
from go_rl.costs.programs.learn.reading import join_examples
from go_rl.costs.programs.learn.unlearned_processor import for_device
from go_rl.costs.programs.learn.weights_file import SHIPPED
from go_rl.costs.programs.machine_code.machine_numbers import MACHINE_NAMES
from go_rl.costs.trees.boosted import BoostedConfig
from tests.costs.programs.made_up import learned_programs, made_up_programs, with_nests_and_traces


class ProgramContract(PredictorContract):
    """Of programs with nests and schedules; a subclass names its kind and how it is fitted."""

    examples = staticmethod(cache(lambda: with_nests_and_traces(80, 10)))

    def inputs(self, count=None):
        given = self.examples().inputs
        return given if count is None else given.take(np.arange(count))

    def truth(self):
        return np.log(self.examples().seconds)


class TreeContract(ProgramContract):
    """Of a library that may not be there."""

    config = BoostedConfig(trees=30, leaves=4, learning_rate=0.3, least_rows=1, column_share=1.0)

    @pytest.fixture(autouse=True)
    def _has_library(self):
        pytest.importorskip("lightgbm", reason="an extra of go_rl")

    def fitted(self):
        return _trees(self.kind, self.examples, self.config)

    def unfitted(self):
        kind: Any = self.kind
        return kind(None)


@cache
def _trees(kind: Any, examples: Callable[[], ProgramExamples], config: BoostedConfig) -> Any:
    return kind.fit(examples(), config)


class TestCodeTrees(TreeContract):
    kind = CodeTrees

    def test_predictions_are_made_smaller_for_relative_errors(self):
        """Trees that know nothing of the noise: e^±1 at the same features is best predicted low."""
        examples = self.examples()
        noise = np.exp(np.where(np.random.default_rng(0).random(80) < 0.5, 1.0, -1.0))
        noisy = replace(examples, seconds=1e-5 * noise)
        low = CodeTrees.fit(noisy, self.config).predict(noisy.inputs)
        plain = CodeTrees.fit(noisy, self.config, factor=False).predict(noisy.inputs)
        assert np.log(low / plain).mean() == pytest.approx(-0.5, abs=0.05)

    def test_programs_without_nests_are_refused(self):
        with pytest.raises(TrainingError, match="code features read loop nests"):
            CodeTrees.fit(made_up_programs(), self.config)

    def test_code_for_other_processors_is_refused(self):
        examples = self.examples()
        targets = tuple(replace(each, codegen="armv8") for each in examples.inputs.targets)
        other = replace(examples.inputs, targets=targets)
        with pytest.raises(TrainingError, match="not for 'armv8'"):
            self.fitted().predict(other)


@cache
def with_machine_code() -> ProgramExamples:
    """Return programs that take ten times as many cycles by their code as by their time."""
    examples = TreeContract.examples()
    inputs = examples.inputs
    places = [MACHINE_NAMES.index(name) for name in ("machine_cycles", "machine_issue_cycles")]
    machine = {}
    for nest, target, seconds in zip(inputs.nest, inputs.target, examples.seconds, strict=True):
        row = np.zeros(len(MACHINE_NAMES), np.float32)
        row[places] = np.log2(1 + 1e10 * seconds)
        machine[inputs.nests[nest], inputs.targets[target].codegen] = row
    return replace(examples, inputs=replace(inputs, machine=machine))


class TestMachineTrees(TreeContract):
    kind = MachineTrees
    config = replace(TreeContract.config, ridge=1.0)
    examples = staticmethod(with_machine_code)

    def test_programs_without_code_are_refused(self):
        with pytest.raises(TrainingError, match="of 80 of 80 that is not known"):
            MachineTrees.fit(TreeContract.examples(), self.config)

    def test_sizes_beyond_those_learned_have_a_price(self):
        inputs = with_machine_code().inputs
        longer = {key: row + np.float32(20) * (row > 0) for key, row in inputs.machine.items()}
        trees = self.fitted()
        found = trees.predict(replace(inputs, machine=longer))
        assert np.median(found / trees.predict(inputs)) == pytest.approx(2**20, rel=0.5)

    def test_fine_tuning_on_other_sizes_makes_them_known(self):
        inputs = with_machine_code().inputs
        longer = {key: row + np.float32(20) * (row > 0) for key, row in inputs.machine.items()}
        other = replace(with_machine_code(), inputs=replace(inputs, machine=longer))
        trees = self.fitted()
        assert trees.interval(other.inputs).unlike.all()
        tuned = trees.fine_tuned(other)
        assert not tuned.interval(other.inputs).unlike.any()
        assert not tuned.interval(inputs).unlike.any()

    def test_few_programs_of_another_processor_are_learned_with_those_known(self, tmp_path):
        known = with_machine_code()
        targets = tuple(replace(each, device="other") for each in known.inputs.targets)
        inputs = replace(known.inputs, targets=targets)
        slower = replace(known, seconds=3 * known.seconds, inputs=inputs)
        few = slower.take(np.flatnonzero(known.inputs.task < 3))
        found = self.fitted().for_processor(known, few, slower)
        assert found.errors != self.fitted().errors
        both = MachineTrees.fit(join_examples([known, few]), self.config)
        for trees in (found, both):
            plain = trees.predict(inputs) / trees.factor
            assert np.median(plain / slower.seconds) == pytest.approx(1, abs=0.2)
        both.save(tmp_path / "both.npz")
        again = MachineTrees.load(tmp_path / "both.npz").predict(known.inputs)
        assert np.median(again / known.seconds) == pytest.approx(both.factor, abs=0.2)

    def test_a_processor_not_learned_is_priced_as_the_mean_of_those_learned(self, tmp_path):
        one, other = launched("one", 1, 5e-6), launched("other", 3, 1e-6)
        trees = MachineTrees.fit(join_examples([one, other]), self.config)
        trees.save(tmp_path / "trees.npz")
        trees = MachineTrees.load(tmp_path / "trees.npz")
        assert set(trees.devices) == {"one", "other"}
        assert for_device(trees, "other") is for_device(trees, "one") is trees
        strange = replace(one.inputs, targets=launched("new", 1, 0).inputs.targets)
        found = for_device(trees, "new").interval(strange)
        first, second = trees.interval(one.inputs), trees.interval(other.inputs)
        np.testing.assert_allclose(found.seconds, np.sqrt(first.seconds * second.seconds))
        np.testing.assert_array_equal(found.low, np.minimum(first.low, second.low))
        np.testing.assert_array_equal(found.high, np.maximum(first.high, second.high))
        assert found.unlike.all()
        assert (found.low < found.seconds).all()
        assert (found.seconds < found.high).all()

    def test_trees_of_one_processor_name_it(self):
        known = with_machine_code()
        trees = self.fitted()
        assert trees.devices == ("cpu",)
        targets = tuple(replace(each, device="other") for each in known.inputs.targets)
        other = replace(known, inputs=replace(known.inputs, targets=targets))
        assert trees.fine_tuned(other).devices == ("other",)
        assert trees.for_processor(known, other).devices == ("other",)
        anonymous = replace(trees, devices=())
        assert for_device(anonymous, "other") is anonymous

    def test_weights_that_ship_name_their_processors(self):
        trees = MachineTrees.load(SHIPPED / "programs-5.npz")
        assert trees.devices == shipped_devices("programs-5")
        assert trees.devices[-1] == "genuineintel-family-6-model-167"
        assert len(trees.devices) == 1 + len(trees.slower) == 4

    def test_entering_parallel_loops_is_told_apart(self, tmp_path):
        known = launched("one", 1, 5e-6)
        trees = MachineTrees.fit(known, self.config)
        assert trees.launch == {"one": pytest.approx(5e-6, rel=0.1), "": trees.launch["one"]}
        other = launched("another", 2, 1e-6)
        few = other.take(np.flatnonzero(other.inputs.task < 4))
        found = trees.for_processor(known, few)
        assert found.launch[""] == pytest.approx(1e-6, rel=0.2)
        for each, examples in ((trees, known), (found, other)):
            ratios = each.predict(examples.inputs) / examples.seconds
            enters = examples.inputs.launches > 0
            assert np.median(ratios[enters]) == pytest.approx(1, abs=0.1)
            assert np.median(ratios[~enters]) / each.factor == pytest.approx(1, abs=0.2)
        found.save(tmp_path / "found.npz")
        again = MachineTrees.load(tmp_path / "found.npz")
        np.testing.assert_allclose(again.predict(other.inputs), found.predict(other.inputs))


def launched(device: str, slower: float, launch: float) -> ProgramExamples:
    """Return programs of `with_machine_code`, every second one with a parallel loop to enter, all
    small; on a processor of a name."""
    known = with_machine_code()
    inputs, texts = known.inputs, {}
    for number, text in enumerate(known.inputs.nests):
        document = json.loads(text)
        document["nodes"][0][2] = number % 2  # serial or parallel
        texts[text] = json.dumps(document)
    seconds = known.seconds / known.seconds.max() * 2e-8
    shift = np.float32(np.log2(known.seconds.max() / 2e-8))
    machine = {(texts[text], code): np.maximum(row - shift * (row > 0), 0)
               for (text, code), row in inputs.machine.items()}  # fmt: skip
    targets = tuple(replace(each, device=device) for each in inputs.targets)
    inputs = replace(
        inputs, nests=tuple(texts[text] for text in inputs.nests), machine=machine, targets=targets
    )
    return replace(known, inputs=inputs, seconds=slower * seconds + launch * inputs.launches)


@pytest.mark.slow
class TestCdmpp(ProgramContract):
    kind = ProgramPredictor
    examples = staticmethod(cache(made_up_programs))

    def fitted(self):
        return learned_programs()

    def unfitted(self):
        return replace(learned_programs(), networks=())
