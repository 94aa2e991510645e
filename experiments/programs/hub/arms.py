"""Arms of ``cross_vendor``: predictions for programs of a GPU that was not learned from, with
nothing measured there, and with some of its programs.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from types import MappingProxyType

import jax
import numpy as np

from experiments.programs.cdmpp.runs import OneNetwork, trained, tuned
from go_rl.predictors.boosted import BoostedConfig
from go_rl.predictors.programs.examples import TARGET_FEATURES, ProgramExamples, ProgramInputs
from go_rl.predictors.programs.label_transform import LabelTransform
from go_rl.predictors.programs.network import initial_program_params
from go_rl.predictors.programs.prepared import InputScale
from go_rl.predictors.programs.rivals.lightgbm_trees import LightgbmPrograms
from go_rl.predictors.programs.rivals.xgboost_trees import XgboostConfig, XgboostPrograms
from go_rl.predictors.programs.select_tasks import program_features, select_tasks
from go_rl.predictors.programs.training import ProgramTrainConfig, TrainedProgramNetwork
from go_rl.predictors.splits import Split, by_target
from go_rl.programs.features import join_asts
from go_rl.programs.nests.benchmark_hub import CHANNELS
from go_rl.runtime.parameter_file import parameter_tree, read_parameters, write_parameters

TREES = 300
ALONE = 300
"""Updates of a network that learns the measured programs alone."""
WORK: Mapping[str, tuple[float, float]] = MappingProxyType({
    "convolution": (2.0 * 4096**2 * 225, 4.0 * (4110**2 + 4096**2)),
    "dedispersion": (2.0 * CHANNELS * 25_000 * 2048, 4.0 * 25_000 * (CHANNELS + 2048)),
})  # fmt: skip
"""FLOP and the bytes that must move, of each kernel as it was measured."""
BOTH = "LightGBM, sources and these"
FACTOR = "Habitat's scaling, times a factor of these"
Predict = Callable[[ProgramInputs], np.ndarray]


@dataclass(frozen=True, eq=False)
class KeptNetworks:
    """CDMPP's networks in a folder, which targets with the same training rows share."""

    folder: Path

    def of(self, train: ProgramExamples, config: ProgramTrainConfig) -> OneNetwork:
        """Return the network of training rows; trained where it is not there."""
        rows = np.stack([train.inputs.target, train.inputs.nest]).tobytes()
        known = np.isfinite(train.inputs.devices).tobytes()
        key = hashlib.sha256(rows + known + repr(config).encode()).hexdigest()[:16]
        path = self.folder / f"network-{key}.npz"
        if not path.exists():
            self.folder.mkdir(parents=True, exist_ok=True)
            write_parameters(path, trained(train, config).network.params, {})
        params = parameter_tree(read_parameters(path)[1])
        scale, labels = (
            InputScale.fit(train.inputs),
            LabelTransform.fit(config.labels, train.seconds),
        )
        return OneNetwork(TrainedProgramNetwork(config.network, params), config, scale, labels)


@dataclass(frozen=True, eq=False)
class Setting:
    """Rows of source GPUs and of a target, divided by program."""

    examples: ProgramExamples
    target: int
    """Its number; rows of others are sources."""
    config: ProgramTrainConfig
    tuning: int
    """Updates of fine-tuning."""
    networks: KeptNetworks

    @cached_property
    def split(self) -> Split:
        """Programs 8 : 1 : 1; ``adapt``: those of the target that may be measured, ``held_out``:
        those of it that judge."""
        inputs = self.examples.inputs
        return by_target(inputs.nest, inputs.target, self.target, self.config.seed)

    @cached_property
    def train(self) -> ProgramExamples:
        """Of the sources."""
        return self.examples.take(self.split.train)

    @cached_property
    def adapt(self) -> ProgramExamples:
        """Of the target, the programs learned from on the sources."""
        return self.examples.take(self.split.adapt)

    @cached_property
    def test(self) -> ProgramExamples:
        """Of the target, programs that were learned from on no GPU."""
        return self.examples.take(self.split.held_out)

    @cached_property
    def network(self) -> OneNetwork:
        """CDMPP's, of the sources."""
        return self.networks.of(self.train, self.config)

    def sampled(self, count: int) -> ProgramExamples:
        """Return programs of the target chosen by k-means (CDMPP, algorithm 1)."""
        inputs = self.adapt.inputs
        return self._programs(
            select_tasks(program_features(inputs), inputs.nest, count, self.config.seed)
        )

    def drawn(self, count: int, draw: int) -> ProgramExamples:
        """Return random programs of the target."""
        known = np.unique(self.adapt.inputs.nest)
        return self._programs(np.random.default_rng(draw).choice(known, count, replace=False))

    def _programs(self, chosen: np.ndarray) -> ProgramExamples:
        return self.adapt.take(np.flatnonzero(np.isin(self.adapt.inputs.nest, chosen)))

    def tuned_on(self, few: ProgramExamples) -> np.ndarray:
        """Return [E] seconds of the test programs after fine-tuning on measured ones."""
        return tuned(self.network, few, None, self.tuning).seconds(self.test.inputs)


def unmeasured(setting: Setting) -> dict[str, np.ndarray]:
    """Return [E] seconds of the test programs by arms that know the target's data sheet."""
    test, train, seed = setting.test.inputs, setting.train, setting.config.seed
    blind = setting.networks.of(replace(train, inputs=_blind(train.inputs)), setting.config)
    cmd = tuned(setting.network, train, setting.adapt.inputs, setting.tuning)
    return {
        "CDMPP": setting.network.seconds(test),
        "CDMPP, target's inputs (CMD)": cmd.seconds(test),
        "CDMPP, blind to devices": blind.seconds(_blind(test)),
        "untrained network": _untrained(setting).seconds(test),
        "XGBoost": _xgboost(train, seed)(test),
        "LightGBM": _lightgbm(train, seed)(test),
        "Habitat's scaling of sources' times": scaled_sources(setting, setting.test.inputs),
        "roofline": roofline(test),
        "mean of the kernel on sources": mean_of_kernel(train, test),
    }


def measured(setting: Setting, few: ProgramExamples) -> dict[str, np.ndarray]:
    """Return [E] seconds by arms that know some of the target's programs, CDMPP apart."""
    test, seed = setting.test.inputs, setting.config.seed
    both = joined((setting.train, few))
    alone = trained(few, replace(setting.config, steps=ALONE))
    return {
        **simple(setting, few),
        "CDMPP, these alone": alone.seconds(test),
        "XGBoost, sources and these": _xgboost(both, seed)(test),
        "XGBoost, these alone": _xgboost(few, seed)(test),
        "LightGBM, these alone": _lightgbm(few, seed)(test),
        "mean of the kernel in these": mean_of_kernel(few, test),
    }


def simple(setting: Setting, few: ProgramExamples) -> dict[str, np.ndarray]:
    """Return [E] seconds by the two cheapest of these arms."""
    test, both = setting.test.inputs, joined((setting.train, few))
    own = np.log(few.seconds / scaled_sources(setting, few.inputs))
    factor = [np.median(own[few.inputs.task == k]) if (few.inputs.task == k).any() else 0.0
              for k in range(len(WORK))]  # fmt: skip
    return {
        BOTH: _lightgbm(both, setting.config.seed)(test),
        FACTOR: scaled_sources(setting, test) * np.exp(factor)[test.task],
    }


def joined(parts: Sequence[ProgramExamples]) -> ProgramExamples:
    """Return the rows of several examples of one numbering."""
    first = parts[0]
    rows = {name: np.concatenate([getattr(part.inputs, name) for part in parts])
            for name in ("task", "target", "nest", "trace")}  # fmt: skip
    asts = join_asts([part.inputs.asts for part in parts])
    return replace(
        first, inputs=replace(first.inputs, asts=asts, **rows),
        seconds=np.concatenate([part.seconds for part in parts]),
        spread=np.concatenate([part.spread for part in parts]),
    )  # fmt: skip


def mean_of_kernel(learned: ProgramExamples, asked: ProgramInputs) -> np.ndarray:
    """Return [P] the geometric mean of a kernel's seconds; of all, where it was not learned."""
    logs, task = np.log(learned.seconds), learned.inputs.task
    means = [logs[task == k].mean() if (task == k).any() else logs.mean()
             for k in range(len(asked.tasks))]  # fmt: skip
    return np.exp(np.array(means))[asked.task]


def roofline(asked: ProgramInputs) -> np.ndarray:
    """Return [P] the longer of computing at the peak and moving what must move."""
    flops, moved = _work(asked)
    return np.maximum(flops / _of(asked, "peak_flops"), moved / _of(asked, "memory_bandwidth"))


def scaled_sources(setting: Setting, asked: ProgramInputs) -> np.ndarray:
    """Return [P] seconds of the same programs on the sources, scaled to the target by bandwidth and
    by cores times clock, geometric means over sources (Habitat's wave scaling, USENIX ATC 2021;
    intensity against the target's ridge says how much by which). It knows the sources' times of
    test programs, too. Where no source ran a program: the mean of its kernel there, scaled."""
    rows = setting.examples.take(np.flatnonzero(setting.examples.inputs.target != setting.target))
    logs = np.log(rows.seconds) + _habitat(rows.inputs, setting.target)
    count = int(setting.examples.inputs.nest.max()) + 1
    ran = np.bincount(rows.inputs.nest, minlength=count)
    total = np.bincount(rows.inputs.nest, weights=logs, minlength=count)
    spare = np.log(mean_of_kernel(replace(rows, seconds=np.exp(logs)), asked))
    own = total[asked.nest] / np.maximum(ran[asked.nest], 1)
    return np.exp(np.where(ran[asked.nest] > 0, own, spare))


def _habitat(rows: ProgramInputs, target: int) -> np.ndarray:
    """[P] logarithm of the factor from each row's GPU to the target."""
    flops, moved = _work(rows)
    field = {name: rows.devices[:, TARGET_FEATURES.index(name)] for name in TARGET_FEATURES}
    ridge = 2.0 ** (field["peak_flops"] - field["memory_bandwidth"])[target]
    share = flops / moved / ridge
    gamma = np.where(share < 1, 1 - 0.5 * share, 0.5 / share)

    def ratio(name: str) -> np.ndarray:
        return (field[name][rows.target] - field[name][target]) * np.log(2.0)

    return gamma * ratio("memory_bandwidth") + (1 - gamma) * (ratio("cores") + ratio("clock_hz"))


def _work(asked: ProgramInputs) -> tuple[np.ndarray, np.ndarray]:
    both = np.array([WORK[names[0]] for names in asked.networks])[asked.task]
    return both[:, 0], both[:, 1]


def _of(asked: ProgramInputs, field: str) -> np.ndarray:
    return 2.0 ** asked.device_features[:, TARGET_FEATURES.index(field)]


def _blind(inputs: ProgramInputs) -> ProgramInputs:
    return replace(inputs, devices=np.full_like(inputs.devices, np.nan))


def _untrained(setting: Setting) -> OneNetwork:
    config, start = setting.config, setting.network
    params = initial_program_params(config.network, jax.random.key(config.seed))
    return replace(start, network=TrainedProgramNetwork(config.network, params))


def _xgboost(learned: ProgramExamples, seed: int) -> Predict:
    return XgboostPrograms.fit(learned, XgboostConfig(TREES, seed=seed)).predict


def _lightgbm(learned: ProgramExamples, seed: int) -> Predict:
    config = BoostedConfig(trees=TREES, learning_rate=0.05, seed=seed)
    return LightgbmPrograms.fit(learned, config).predict
