"""`TransferTuner`: relative throughput of programs from their statements and joint features of
network and hardware, trained once and used on a target with or without fine-tuning."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import flax.linen as nn
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Float32, Float64, Int64
from scipy.special import expit

from go_rl.core import TrainingError
from go_rl.costs.learning.metrics import least_of_group
from go_rl.costs.learning.training import MemberReport, Params, train
from go_rl.costs.programs.features import LEAF_NUMBERS
from go_rl.costs.programs.learn.examples import ProgramExamples, ProgramInputs
from go_rl.costs.programs.learn.prepared import (
    LEAF_SIZES,
    InputScale,
    column_scale,
    filled_size,
    masked_rows,
    prepare,
)
from go_rl.costs.programs.learn.transfer.joint_features import JOINT_FEATURES, joint_features
from go_rl.costs.programs.learn.transfer.saved_network import SavedNetwork, outputs
from go_rl.costs.programs.learn.transfer.tuner_network import (
    HEAD,
    StatementBatch,
    TunerNetwork,
    TunerSizes,
)
from go_rl.costs.programs.learn.transfer.tuner_training import FROZEN, EpochSource, TunerRun

JOINT = "joint_"
"""Prefix of the names of arrays that standardise joint features."""
TUNING_EPOCHS = 20
"""Epochs of fine-tuning, unless a run says otherwise."""


@dataclass(frozen=True, eq=False)
class StatementPrograms:
    """Programs in groups of statement counts that are filled up alike."""

    groups: tuple[Int64[np.ndarray, "J"], ...]
    sizes: tuple[int, ...]
    """Statements to which each group is filled up."""
    leaves: Float32[np.ndarray, "S numbers"]
    first_leaf: Int64[np.ndarray, "P1"]
    joint: Float32[np.ndarray, "P J2"]

    def batch(self, group: int, which: Int64[np.ndarray, "B"]) -> StatementBatch:
        """Return the statements of programs of a group, padded to its size."""
        first, count = self.first_leaf[which], np.diff(self.first_leaf)[which]
        slot = np.arange(self.sizes[group])[None, :]
        rows = np.minimum(first[:, None] + slot, len(self.leaves) - 1)
        leaves = self.leaves[rows] * (slot < count[:, None])[..., None].astype(np.float32)
        return StatementBatch(leaves, count.astype(np.int32), self.joint[which])


@dataclass(frozen=True, eq=False)
class TransferTuner(SavedNetwork):
    """Transfer tuner of this module. Scores are minus the relative throughput: the smallest is the
    fastest."""

    what = "the transfer tuner"
    unit = "score"
    format = "go_rl-programs-transfer-tuner"
    sizes_type = TunerSizes
    run_type = TunerRun

    @classmethod
    def module(cls, sizes: TunerSizes) -> nn.Module:
        return TunerNetwork(sizes)

    @classmethod
    def scale_of(cls, inputs: ProgramInputs) -> dict[str, np.ndarray]:
        joint = column_scale(joint_features(inputs))
        return {**InputScale.fit(inputs).arrays(), **{JOINT + k: v for k, v in joint.items()}}

    @classmethod
    def empty_batch(cls, sizes: Any) -> Any:
        return StatementBatch(
            jnp.zeros((1, LEAF_SIZES[0], LEAF_NUMBERS), jnp.float32),
            jnp.ones(1, jnp.int32),
            jnp.zeros((1, 2 * len(JOINT_FEATURES)), jnp.float32),
        )

    @classmethod
    def fit(
        cls,
        examples: ProgramExamples,
        run: TunerRun | None = None,
        sizes: TunerSizes | None = None,
        report: MemberReport | None = None,
        throughput: Float64[np.ndarray, "P"] | None = None,
    ) -> TransferTuner:
        """Return a tuner that learned from examples.

        Args:
            examples: with times.
            run: of training.
            sizes: of the network.
            report: receives every hundredth update, and its loss.
            throughput: [P] relative ones, where faster programs than these examples are known;
                None: `relative_throughput`.

        Raises:
            TrainingError: there is no example, or the loss became NaN.
        """
        if not len(examples.seconds):
            raise TrainingError(f"{cls.what}: there is no program to learn from")
        run, sizes = run or TunerRun(), sizes or TunerSizes()
        scale = cls.scale_of(examples.inputs)
        params = jax.jit(cls.initial, static_argnums=0)(sizes, jax.random.key(run.seed))
        return cls(sizes, params, scale, run, {})._trained(
            examples, run, params, report, throughput
        )

    def fine_tuned(
        self,
        examples: ProgramExamples,
        run: TunerRun | None = None,
        report: MemberReport | None = None,
    ) -> TransferTuner:
        """Return the tuner after its attention head learned from examples of another target; the
        LSTM layers stay as they are.

        Args:
            examples: of the target.
            run: of the updates; None: that of the first training, for `TUNING_EPOCHS`.
            report: see `fit`.
        """
        learned = self.params["params"]
        params = {
            "params": {name: learned[name] for name in HEAD},
            FROZEN: {name: learned[name] for name in learned if name not in HEAD},
        }
        return self._trained(examples, run or self._tuning_run(), params, report)

    def trained_on(
        self,
        examples: ProgramExamples,
        run: TunerRun,
        throughput: Float64[np.ndarray, "P"] | None = None,
    ) -> TransferTuner:
        """Return the tuner after more training of all layers, its optimiser at its start; see
        `fit`."""
        return self._trained(examples, run, self.params, None, throughput)

    def throughput(self, inputs: ProgramInputs) -> Float64[np.ndarray, "P"]:
        """Return [P] predicted throughput relative to the fastest program of the task on the
        target, in (0, 1)."""
        if not inputs.num_programs:
            return np.zeros(0)
        programs = statement_programs(inputs, self.scale)
        out = outputs(self.module(self.sizes), self.params, programs, inputs.num_programs)
        return expit(out.astype(np.float64))

    def states(self, inputs: ProgramInputs) -> Float32[np.ndarray, "P W"]:
        """Return [P, 2 units] the last state of the attention head: what the throughput is read
        from."""
        width = 2 * self.sizes.units
        if not inputs.num_programs:
            return np.zeros((0, width), np.float32)
        programs = statement_programs(inputs, self.scale)
        network = TunerNetwork(self.sizes, states=True)
        return outputs(network, self.params, programs, inputs.num_programs, width)

    def knows(self, leaves: int) -> bool:
        return 0 < leaves <= LEAF_SIZES[-1]

    def predict(self, inputs: ProgramInputs) -> Float64[np.ndarray, "P"]:
        """Return [P] predictions."""
        return -self.throughput(inputs)

    def _tuning_run(self) -> TunerRun:
        assert isinstance(self.run, TunerRun)  # `run_type`
        return replace(self.run, epochs=TUNING_EPOCHS)

    def _trained(
        self,
        examples: ProgramExamples,
        run: TunerRun,
        params: Params,
        report: MemberReport | None,
        throughput: Float64[np.ndarray, "P"] | None = None,
    ) -> TransferTuner:
        programs = statement_programs(examples.inputs, self.scale)
        own, group = relative_throughput(examples)
        throughput = own if throughput is None else throughput
        source = EpochSource(programs, throughput, group, run, self.module(self.sizes))
        run = replace(run, updates=source.updates)
        rng = np.random.default_rng(run.seed)
        found = train(params, source, run, rng, report, run.rule)
        merged = {"params": {**found.get(FROZEN, {}), **found["params"]}}
        return replace(self, params=merged, run=run, drawn=run.updates * run.batch)


def relative_throughput(
    examples: ProgramExamples,
) -> tuple[Float64[np.ndarray, "P"], Int64[np.ndarray, "P"]]:
    """Return [P] seconds of the fastest program of each one's task on its target over its own
    seconds (TenSet's label), and [P] the number of the task on the target."""
    _, group = np.unique(examples.inputs.group, return_inverse=True)
    return least_of_group(examples.seconds, group) / examples.seconds, group


def statement_programs(inputs: ProgramInputs, scale: Mapping[str, np.ndarray]) -> StatementPrograms:
    """Return what a `TunerNetwork` reads.

    Raises:
        TrainingError: a program has too many statements.
    """
    own = {name: rows for name, rows in scale.items() if not name.startswith(JOINT)}
    joint = {name.removeprefix(JOINT): scale[name] for name in scale if name.startswith(JOINT)}
    ready = prepare(inputs, InputScale(**own), np.unique(inputs.leaves).tolist())
    filled = np.array([filled_size(n, LEAF_SIZES, "statements") for n in inputs.leaves.tolist()])
    sizes = np.unique(filled).tolist()
    return StatementPrograms(
        groups=tuple(np.flatnonzero(filled == size) for size in sizes), sizes=tuple(sizes),
        leaves=ready.leaves, first_leaf=inputs.asts.first_leaf,
        joint=masked_rows(joint_features(inputs), joint),
    )  # fmt: skip
