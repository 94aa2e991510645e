"""`WholeModel`: the model that stages were cut from, its outputs and its throughput."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from pathlib import Path

import numpy as np

from go_rl.core import ExecutionError
from go_rl.plans.pipeline.config import PipelineConfig
from go_rl.plans.pipeline.output_errors import OutputError, output_error, rounding_of
from go_rl.plans.pipeline.sessions import open_session, short_reason
from go_rl.plans.stages.manifest import FROM_USER, Manifest

EXPORTED = "--model names the model that was exported"
OUTSIDE = "escapes model directory"
"""Words by which onnxruntime refuses weights in other folders, such as ``../``."""


class WholeModel:
    """The model with the user's inputs; those that no stage reads are zeros.

    Raises:
        ExecutionError: the runtime refuses the model, or it is another one: it lacks an input or
            an output, or an input is of another type or shape.
    """

    def __init__(
        self, path: Path, manifest: Manifest, inputs: Mapping[str, np.ndarray], threads: int,
        as_written: bool,
    ) -> None:  # fmt: skip
        self.path, self.manifest, self.threads = path, manifest, threads
        self.outputs = {tensor.name: tensor.element_type for tensor in manifest.outputs}
        """ONNX's name of the element type by output."""
        try:
            names = [tensor.name for tensor in manifest.outputs]
            self.session = open_session(manifest.runtime, path, names, threads, as_written)
        except Exception as error:
            reason = short_reason(error)
            if OUTSIDE in reason:
                reason = (
                    "it loads no weights from outside of the model's folder; store them beside the "
                    "model, or name a copy that has them there with --model"
                )
            raise ExecutionError(
                f"{path}: {manifest.runtime} refuses the model ({reason})"
            ) from error
        self._check_same(inputs)
        types = self.session.inputs.items()
        self.feeds = self.session.hold(
            {n: inputs[n] if n in inputs else each.zeros() for n, each in types}
        )

    def _check_same(self, inputs: Mapping[str, np.ndarray]) -> None:
        """Raise an `ExecutionError` where the model is not the one that was cut."""
        read = {t.name for stage in self.manifest.stages for t in stage.inputs
                if t.sender == FROM_USER and not t.is_weight}  # fmt: skip
        if foreign := sorted(read - set(self.session.inputs)):
            raise ExecutionError(
                f"{self.path}: has no input {foreign[0]!r}, which the stages read; {EXPORTED}"
            )
        made = self.session.outputs
        lacking = [] if made is None else [name for name in self.outputs if name not in made]
        if lacking:
            raise ExecutionError(
                f"{self.path}: has no output {lacking[0]!r}, which the stages make; {EXPORTED}"
            )
        for name, wanted in self.session.inputs.items():
            if name in inputs and not wanted.takes(inputs[name]):
                given = inputs[name]
                raise ExecutionError(
                    f"{self.path}: input {name!r} is {wanted}; the stages read {given.dtype} "
                    f"{list(given.shape)}; {EXPORTED}"
                )

    def compare(self, made: Mapping[str, np.ndarray]) -> Iterator[OutputError]:
        """Yield the differences of each output; the model has a thread, as each stage has.

        Raises:
            ExecutionError: the model cannot be run, or makes an output of another type or shape.
        """
        self.session.use_threads(1)
        expected = self._run()
        between = {t.element_type for stage in self.manifest.stages for t in stage.inputs
                   if t.sender != FROM_USER}  # fmt: skip
        for name, element_type in self.outputs.items():
            rounding = rounding_of({element_type, *between})
            try:
                found = output_error(name, np.asarray(made[name]), expected[name], rounding)
            except ExecutionError as error:
                raise ExecutionError(f"{self.path}: {error}; {EXPORTED}") from error
            yield found

    def throughput(self, config: PipelineConfig) -> float:
        """Return samples a second, with all threads."""
        self.session.use_threads(self.threads)
        for _ in range(config.warm_up):
            self._run()
        begun = time.perf_counter()
        for _ in range(config.samples):
            self._run()
        return config.samples / (time.perf_counter() - begun)

    def _run(self) -> dict[str, np.ndarray]:
        try:
            return self.session.run(self.feeds)
        except Exception as error:
            raise ExecutionError(
                f"{self.path}: {self.manifest.runtime} cannot run the model ({short_reason(error)})"
            ) from error
