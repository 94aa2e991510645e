"""`NetworkRival`: a network that learned the logarithm of seconds of programs."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, TypeVar

import jax
import numpy as np
from jaxtyping import Float64

from go_rl.costs.learning.training import MemberReport, train
from go_rl.costs.programs.learn.examples import ProgramExamples, ProgramInputs
from go_rl.costs.programs.learn.label_transform import LabelTransform
from go_rl.costs.programs.learn.rivals.batched_training import (
    BatchedPrograms,
    GroupedSource,
    RivalRun,
    outputs,
)
from go_rl.costs.programs.learn.rivals.saved_network import SavedNetwork

Learned = TypeVar("Learned", bound="NetworkRival")


@dataclass(frozen=True, eq=False)
class NetworkRival(SavedNetwork):
    """Abstract: its network's output is [B] standardised logarithms of seconds."""

    run_defaults: ClassVar[RivalRun]
    run_type = RivalRun
    unit = "seconds"

    @classmethod
    @abstractmethod
    def batched(
        cls, inputs: ProgramInputs, scale: Mapping[str, np.ndarray], sizes: Any
    ) -> BatchedPrograms:
        """Return what the network reads.

        Raises:
            TrainingError: the programs lack what it reads.
        """

    @classmethod
    def fit(
        cls: type[Learned],
        examples: ProgramExamples,
        run: RivalRun | None = None,
        sizes: Any = None,
        report: MemberReport | None = None,
    ) -> Learned:
        """Return a network that learned from examples.

        Args:
            examples: with times.
            run: of training.
            sizes: of the network.
            report: receives every hundredth update, and its loss.

        Raises:
            TrainingError: the programs lack what it reads, or the loss became NaN.
        """
        run, sizes = run or cls.run_defaults, sizes or cls.sizes_type()
        scale = cls.scale_of(examples.inputs)
        programs = cls.batched(examples.inputs, scale, sizes)
        transform = LabelTransform.fit("log", examples.seconds)
        labels = (transform.labels(examples.seconds) - transform.mean) / transform.deviation
        source = GroupedSource(programs, labels, transform.deviation, run, cls.module(sizes))
        params = jax.jit(cls.initial, static_argnums=0)(sizes, jax.random.key(run.seed))
        rng = np.random.default_rng(run.seed)
        params = train(params, [source], run, rng, report, run.rule)
        return cls(sizes, params, scale, run, transform.to_json(), source.drawn)

    def predict(self, inputs: ProgramInputs) -> Float64[np.ndarray, "P"]:
        """See `Predictor`."""
        if not inputs.num_programs:
            return np.zeros(0)
        programs = self.batched(inputs, self.scale, self.sizes)
        transform = LabelTransform.from_json(self.labels)
        out = outputs(self.module(self.sizes), self.params, programs, inputs.num_programs)
        return transform.seconds(transform.mean + transform.deviation * out.astype(np.float64))
