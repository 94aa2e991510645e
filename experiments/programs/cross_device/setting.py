"""`Setting`: what is learned from and what judges, where predictors go to another device."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path

import numpy as np

from experiments.programs.cdmpp.runs import OneNetwork, trained, tuned
from go_rl.costs.learning.splits import DataSplit
from go_rl.costs.programs.features import join_asts
from go_rl.costs.programs.learn.examples import ProgramExamples
from go_rl.costs.programs.learn.label_transform import LabelTransform
from go_rl.costs.programs.learn.prepared import InputScale
from go_rl.costs.programs.learn.select_tasks import program_features, select_tasks
from go_rl.costs.programs.learn.training import ProgramTrainConfig, TrainedProgramNetwork
from go_rl.runtime.array_file import parameter_tree, read_parameters, write_parameters


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
class Kinds:
    """What is known of ``T`` tasks without measuring; those of one kernel share means, factors."""

    kind: np.ndarray
    """[T] number of the kernel."""
    work: np.ndarray
    """[T, 2] FLOP and the bytes that must move; NaN where unknown."""


@dataclass(frozen=True, eq=False)
class Setting:
    """Rows of source devices and of a target device, divided by program."""

    examples: ProgramExamples
    target: int
    """Number of the target device; rows of others are sources'."""
    split: DataSplit
    """``train``: of the sources; ``adapt``: of the target, those that may be measured;
    ``held_out``: those of it that judge."""
    kinds: Kinds
    config: ProgramTrainConfig
    tuning: int
    """Updates of fine-tuning."""
    networks: KeptNetworks
    trees: int = 300
    """Of each arm of boosted trees."""

    @cached_property
    def train(self) -> ProgramExamples:
        """Of the sources."""
        return self.examples.take(self.split.train)

    @cached_property
    def adapt(self) -> ProgramExamples:
        """Of the target, what may be measured: what was learned from on the sources."""
        return self.examples.take(self.split.adapt)

    @cached_property
    def test(self) -> ProgramExamples:
        """Of the target, what was learned from on no device."""
        return self.examples.take(self.split.held_out)

    @cached_property
    def network(self) -> OneNetwork:
        """CDMPP's, of the sources."""
        return self.networks.of(self.train, self.config)

    def sampled(self, count: int) -> ProgramExamples:
        """Return programs of the target chosen by k-means (CDMPP, algorithm 1)."""
        features = program_features(self.adapt.inputs)
        return self._measured(
            select_tasks(features, self.adapt.inputs.nest, count, self.config.seed)
        )

    def drawn(self, count: int, draw: int) -> ProgramExamples:
        """Return random programs of the target."""
        known = np.unique(self.adapt.inputs.nest)
        return self._measured(np.random.default_rng(draw).choice(known, count, replace=False))

    def _measured(self, chosen: np.ndarray) -> ProgramExamples:
        return self.adapt.take(np.flatnonzero(np.isin(self.adapt.inputs.nest, chosen)))

    def tuned_on(self, few: ProgramExamples) -> np.ndarray:
        """Return [E] seconds of the test programs after fine-tuning on measured ones."""
        return tuned(self.network, few, None, self.tuning).seconds(self.test.inputs)


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
