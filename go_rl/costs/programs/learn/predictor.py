"""`ProgramPredictor`: CDMPP, seconds of tensor programs by an ensemble, an interval, and whether
programs are unlike its training data."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np
from jaxtyping import Bool, Float32, Float64

from go_rl.core import TrainingError
from go_rl.costs.learning.predictor import Predictor
from go_rl.costs.learning.splits import by_task
from go_rl.costs.learning.training import MEMBERS, MemberReport, Report, train_members
from go_rl.costs.programs.learn.code_inputs import of_width
from go_rl.costs.programs.learn.examples import ProgramExamples, ProgramInputs
from go_rl.costs.programs.learn.label_transform import LabelTransform
from go_rl.costs.programs.learn.prepared import InputScale, prepare
from go_rl.costs.programs.learn.training import (
    LossName,
    ProgramTrainConfig,
    TrainedProgramNetwork,
    train_programs_network,
)

LEAST_EXAMPLES, LEAST_TASKS = 100, 10
"""Least examples and tasks from which something is learned."""
TAILS = (0.05, 0.95)
"""Quantiles of errors that bound a 90 % interval."""
OWN_SPREAD = 0.1
"""Deviation of logarithms that even members that agree have."""
MARGIN = 1.0
"""Margin around the sums of features seen, in deviations; beyond it a program is unlike."""
RARE_SPREAD = 0.99
"""Share of the programs judged whose members agree better than those that are unlike."""


@dataclass(frozen=True)
class ProgramCalibration:
    """Errors of an ensemble on tasks that it did not learn from."""

    low: float
    high: float
    """Bounds of the interval: quantiles of log errors, in deviations."""
    most_spread: float
    """Deviation of the members' logarithms beyond which programs are unlike."""


@dataclass(frozen=True, eq=False)
class ProgramPredictions:
    """Predictions of an ensemble for ``P`` programs."""

    seconds: Float64[np.ndarray, "P"]
    low: Float64[np.ndarray, "P"]
    high: Float64[np.ndarray, "P"]
    """[P] bounds of a 90 % interval."""
    spread: Float64[np.ndarray, "P"]
    """[P] deviation of the members' logarithms."""
    unlike: Bool[np.ndarray, "P"]
    """[P] whether features lie outside what was learned, or members disagree more than nearly
    always."""


@dataclass(frozen=True, eq=False)
class ProgramPredictor(Predictor[ProgramExamples, ProgramInputs]):
    """Program predictor: the networks that were learned."""

    networks: tuple[TrainedProgramNetwork, ...]
    """Networks of one configuration."""
    config: ProgramTrainConfig
    scale: InputScale
    transform: LabelTransform
    low: Float32[np.ndarray, "numbers"]
    high: Float32[np.ndarray, "numbers"]
    """[N] least and largest standardised leaf vector learned from."""
    calibration: ProgramCalibration
    name: str
    card: Mapping[str, Any]
    """Model card: data, targets, training, errors."""

    what = "program latency weights"
    unit = "seconds"

    def __post_init__(self) -> None:
        self.check_fitted(bool(self.networks))

    @classmethod
    def fit(
        cls,
        examples: ProgramExamples,
        config: ProgramTrainConfig | None = None,
        members: int = MEMBERS,
        report: Report | None = None,
        judged: ProgramExamples | None = None,
    ) -> ProgramPredictor:
        """Return networks that learned from examples.

        Args:
            examples: at least `LEAST_EXAMPLES` of `LEAST_TASKS` tasks.
            config: of each member; leaf counts and seed are set here.
            members: networks.
            report: receives the network, every hundredth update, and its loss.
            judged: examples whose errors give the interval; None: a tenth of the tasks, which are
                not learned from then.
        """
        check_enough(examples)
        config = config or ProgramTrainConfig()
        if judged is None:
            split = by_task(examples.inputs.task, config.seed)
            judged = examples.take(split.test)
            examples = examples.take(np.concatenate([split.train, split.validation]))
        judged = judged.take(np.flatnonzero(np.isin(judged.inputs.leaves, examples.inputs.leaves)))
        counts = tuple(int(n) for n in np.unique(examples.inputs.leaves))
        config = replace(config, network=replace(config.network, leaf_counts=counts))
        examples = _wide(examples, config)
        scale = InputScale.fit(examples.inputs)
        transform = LabelTransform.fit(config.labels, examples.seconds)

        def train_one(seed: int, member: MemberReport) -> TrainedProgramNetwork:
            run = replace(config, seed=seed)
            return train_programs_network(examples, run, scale, transform, member)

        networks = train_members(train_one, config.seed, members, report)
        bare = cls(
            networks, config, scale, transform, *_range(examples.inputs, scale),
            ProgramCalibration(-1.0, 1.0, 1.0), examples.name, {},
        )  # fmt: skip
        card = {"data": _provenance(examples), "training": asdict(config), "members": members}
        return replace(bare, calibration=bare.calibrated(judged), card=card)

    def fine_tuned(
        self,
        examples: ProgramExamples,
        unlabelled: ProgramInputs | None = None,
        config: ProgramTrainConfig | None = None,
        report: Report | None = None,
        judged: ProgramExamples | None = None,
    ) -> ProgramPredictor:
        """Return the networks after more training: on examples of both domains, or of the source's
        and unlabelled inputs of the target's (CDMPP, equation 7).

        Args:
            examples: with times; leaf counts that the networks know.
            unlabelled: of the target domain, without times; their latents are to be distributed
                like those of the examples.
            config: of the updates; None: `tuning_run`. What networks read and predict stays as it
                is.
            report: see `fit`.
            judged: see `fit`; None: the interval stays.
        """
        config, own = config or self.tuning_run(), self.config
        config = replace(config, network=own.network, labels=own.labels, positional=own.positional)
        examples = _wide(examples, config)
        if unlabelled is not None:
            unlabelled = of_width(unlabelled, own.network.leaf_numbers)

        def train_one(seed: int, member: MemberReport) -> TrainedProgramNetwork:
            start = self.networks[seed - config.seed].params
            run = replace(config, seed=seed)
            return train_programs_network(
                examples, run, self.scale, self.transform, member, start, unlabelled
            )

        networks = train_members(train_one, config.seed, len(self.networks), report)
        more = {"data": _provenance(examples), "training": asdict(config)}
        card = {**self.card, "fine_tuned": [*self.card.get("fine_tuned", ()), more]}
        tuned = replace(self, networks=networks, card=card)
        return tuned if judged is None else replace(tuned, calibration=tuned.calibrated(judged))

    def tuning_run(
        self, updates: int | None = None, loss: LossName | None = None
    ) -> ProgramTrainConfig:
        """Return a run of fine-tuning: the first training at a fifth of its learning rate.

        Args:
            updates: of each network; None: a fifth of those of the first training.
            loss: None: that of the first training.
        """
        own = self.config
        return replace(
            own, updates=updates or max(own.updates // 5, 1), loss=loss or own.loss,
            learning_rate=own.learning_rate / 5,
        )  # fmt: skip

    def predict(self, inputs: ProgramInputs) -> Float64[np.ndarray, "P"]:
        """Return [P] predictions."""
        return np.exp(self._logs(inputs)[0].mean(axis=0))

    def interval(self, inputs: ProgramInputs) -> ProgramPredictions:
        logs, outside = self._logs(inputs)
        mean, spread = logs.mean(axis=0), logs.std(axis=0)
        doubt = np.hypot(spread, OWN_SPREAD)
        return ProgramPredictions(
            seconds=np.exp(mean),
            low=np.exp(mean + self.calibration.low * doubt),
            high=np.exp(mean + self.calibration.high * doubt),
            spread=spread,
            unlike=outside | (spread > self.calibration.most_spread),
        )

    def knows(self, leaves: int) -> bool:
        """Return whether there are layers for programs of this many leaves."""
        return leaves in self.config.network.leaf_counts

    def calibrated(self, judged: ProgramExamples) -> ProgramCalibration:
        """Return what errors on examples that were not learned from say of an interval."""
        logs, _ = self._logs(judged.inputs)
        spread = logs.std(axis=0)
        error = (np.log(judged.seconds) - logs.mean(axis=0)) / np.hypot(spread, OWN_SPREAD)
        if not len(error):
            return ProgramCalibration(-3.0, 3.0, 1.0)
        low, high = np.quantile(error, TAILS)
        most = max(float(np.quantile(spread, RARE_SPREAD)), OWN_SPREAD)
        return ProgramCalibration(float(min(low, -0.05)), float(max(high, 0.05)), most)

    def save(self, path: Any) -> None:
        """Write the networks to a file that `load` reads."""
        from go_rl.costs.programs.learn.weights_file import save_predictor

        save_predictor(self, path)

    @classmethod
    def load(cls, source: Any) -> ProgramPredictor:
        from go_rl.costs.programs.learn.weights_file import load_predictor

        return load_predictor(source)

    def _prepared(self, inputs: ProgramInputs) -> Any:
        counts = self.config.network.leaf_counts
        return prepare(self._wide(inputs), self.scale, counts, self.config.positional)

    def _wide(self, inputs: ProgramInputs) -> ProgramInputs:
        return of_width(inputs, self.config.network.leaf_numbers)

    def _logs(
        self, inputs: ProgramInputs
    ) -> tuple[Float64[np.ndarray, "M P"], Bool[np.ndarray, "P"]]:
        """[M, P] logarithms of seconds by each member, and which programs lie outside."""
        inputs = self._wide(inputs)
        programs = self._prepared(inputs)
        labels = np.stack([network.outputs(programs)[0] for network in self.networks])
        shifted = self.transform.mean + self.transform.deviation * labels.astype(np.float64)
        return np.log(self.transform.seconds(shifted)), self._outside(inputs)

    def _outside(self, inputs: ProgramInputs) -> Bool[np.ndarray, "P"]:
        vectors = (inputs.asts.vectors - self.scale.mean) / self.scale.deviation
        strange = ((vectors < self.low - MARGIN) | (vectors > self.high + MARGIN)).any(axis=1)
        owner = np.repeat(np.arange(inputs.num_programs), inputs.leaves)
        return np.bincount(owner[strange], minlength=inputs.num_programs) > 0


def check_enough(examples: ProgramExamples) -> None:
    """Raise a `TrainingError` if there are too few examples to learn from."""
    programs, tasks = len(examples.seconds), len(np.unique(examples.inputs.task))
    if programs < LEAST_EXAMPLES or tasks < LEAST_TASKS:
        raise TrainingError(
            f"{examples.name}: {programs} programs of {tasks} tasks are left to learn from, and at "
            f"least {LEAST_EXAMPLES} of {LEAST_TASKS} are needed; measure more"
        )


def _wide(examples: ProgramExamples, config: ProgramTrainConfig) -> ProgramExamples:
    inputs = of_width(examples.inputs, config.network.leaf_numbers)
    return replace(examples, inputs=inputs)


def _range(
    inputs: ProgramInputs, scale: InputScale
) -> tuple[Float32[np.ndarray, "numbers"], Float32[np.ndarray, "numbers"]]:
    vectors = (inputs.asts.vectors - scale.mean) / scale.deviation
    return vectors.min(axis=0), vectors.max(axis=0)


def _provenance(examples: ProgramExamples) -> dict[str, Any]:
    inputs = examples.inputs
    used = sorted({inputs.targets[i].title for i in np.unique(inputs.target).tolist()})
    return {
        "name": examples.name,
        "programs": len(examples.seconds),
        "tasks": len(np.unique(inputs.task)),
        "targets": used,
    }
