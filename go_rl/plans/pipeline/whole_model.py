"""`WholeModel`: the model that stages were cut from, its outputs and its throughput."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from go_rl.core import ExecutionError
from go_rl.plans.pipeline.config import PipelineConfig
from go_rl.plans.pipeline.sessions import open_session, short_reason
from go_rl.plans.stages.manifest import FROM_USER, Manifest

FLOOR = 1e-3
"""Share of the largest number of an output below which its differences count absolutely."""

OUTSIDE = "escapes model directory"
"""Words by which onnxruntime refuses weights in other folders, such as ``../``."""

EXTENDED = 2
"""NumPy's mark of element types that a package adds, such as bfloat16."""


@dataclass(frozen=True)
class OutputError:
    """Differences of an output from the whole model's."""

    output: str
    max_absolute: float
    max_relative: float
    """Largest error of a number over its size, or over `FLOOR` of the largest if it is smaller."""
    is_finite: bool = True
    """Whether the whole model's numbers are finite: if not, agreement says little."""


class WholeModel:
    """The model with the user's inputs; those that no stage reads are zeros.

    Raises:
        ExecutionError: the runtime refuses the model, or it is another one.
    """

    def __init__(
        self, path: Path, manifest: Manifest, inputs: Mapping[str, np.ndarray], threads: int,
        as_written: bool,
    ) -> None:  # fmt: skip
        self.threads = threads
        self.outputs = [tensor.name for tensor in manifest.outputs]
        try:
            self.session = open_session(manifest.runtime, path, self.outputs, threads, as_written)
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
        read = {t.name for stage in manifest.stages for t in stage.inputs
                if t.sender == FROM_USER and not t.is_weight}  # fmt: skip
        if foreign := sorted(read - set(self.session.inputs)):
            raise ExecutionError(f"{path}: has no input {foreign[0]!r}, which the stages read")
        types = self.session.inputs.items()
        self.feeds = self.session.hold(
            {n: inputs[n] if n in inputs else each.zeros() for n, each in types}
        )

    def compare(self, made: Mapping[str, np.ndarray]) -> Iterator[OutputError]:
        """Yield the differences of each output; the model has a thread, as each stage has."""
        self.session.use_threads(1)
        expected = self.session.run(self.feeds)
        for name in dict.fromkeys(self.outputs):
            yield _difference(name, np.asarray(made[name]), expected[name])

    def throughput(self, config: PipelineConfig) -> float:
        """Return samples a second, with all threads."""
        self.session.use_threads(self.threads)
        for _ in range(config.warm_up):
            self.session.run(self.feeds)
        begun = time.perf_counter()
        for _ in range(config.samples):
            self.session.run(self.feeds)
        return config.samples / (time.perf_counter() - begun)


def _difference(name: str, found: np.ndarray, expected: np.ndarray) -> OutputError:
    if found.shape != expected.shape or found.dtype != expected.dtype:
        raise ExecutionError(
            f"output {name!r} is {found.dtype} {list(found.shape)}; the whole model makes "
            f"{expected.dtype} {list(expected.shape)}"
        )
    is_extended = expected.dtype.isbuiltin == EXTENDED
    if not (is_extended or np.issubdtype(expected.dtype, np.number)):
        wrong = float((found != expected).any())
        return OutputError(name, wrong, wrong)
    both = [each.astype(np.complex128 if np.iscomplexobj(each) else np.float64)
            for each in (found, expected)]  # fmt: skip
    gap = np.where(both[0] == both[1], 0.0, np.abs(both[0] - both[1]))
    gap = np.where(np.isnan(both[0]) & np.isnan(both[1]), 0.0, gap)
    if not gap.size:
        return OutputError(name, 0.0, 0.0)
    size = np.abs(both[1])
    floor = max(FLOOR * float(np.nanmax(size, initial=0.0)), np.finfo(np.float64).tiny)
    relative = np.divide(gap, np.maximum(size, floor), out=np.zeros_like(gap), where=gap != 0)
    return OutputError(name, float(gap.max()), float(relative.max()), bool(np.isfinite(size).all()))
