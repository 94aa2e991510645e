"""`WholeModel`: the model that stages were cut from, its outputs and its throughput."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from go_rl.core import ExecutionError
from go_rl.plans.pipeline.config import PipelineConfig
from go_rl.plans.pipeline.worker import session_of, short_reason
from go_rl.plans.stages.manifest import Manifest

FLOOR = 1e-3
"""Share of the largest number of an output below which its differences count absolutely."""


@dataclass(frozen=True)
class OutputError:
    """Differences of an output from the whole model's."""

    output: str
    max_absolute: float
    max_relative: float
    """Largest error of a number over its size, or over `FLOOR` of the largest if it is smaller."""


class WholeModel:
    """A session of onnxruntime with the user's inputs.

    Raises:
        ExecutionError: onnxruntime refuses the model.
    """

    def __init__(
        self, path: Path, inputs: Mapping[str, np.ndarray], threads: int, as_written: bool
    ) -> None:
        try:
            self.session = session_of(str(path), threads, as_written)
        except Exception as error:
            reason = short_reason(error)
            raise ExecutionError(f"{path}: onnxruntime refuses the model ({reason})") from error
        self.feeds = {
            value.name: inputs[value.name] if value.name in inputs else _unread(value)
            for value in self.session.get_inputs()
        }

    def compare(self, manifest: Manifest, made: Mapping[str, np.ndarray]) -> Iterator[OutputError]:
        """Yield the differences of each output."""
        names = [tensor.name for tensor in manifest.outputs]
        for name, expected in zip(names, self.session.run(names, self.feeds), strict=True):
            yield _difference(name, np.asarray(made[name]), np.asarray(expected))

    def throughput(self, config: PipelineConfig) -> float:
        """Return samples a second."""
        for _ in range(config.warm_up):
            self.session.run(None, self.feeds)
        begun = time.perf_counter()
        for _ in range(config.samples):
            self.session.run(None, self.feeds)
        return config.samples / (time.perf_counter() - begun)


def _unread(value: Any) -> np.ndarray:
    """An input that no stage reads, and onnxruntime wants: zeros, each open extent 1."""
    word = value.type.removeprefix("tensor(").removesuffix(")")
    shape = [extent if isinstance(extent, int) else 1 for extent in value.shape]
    return np.zeros(shape, {"float": "f4", "double": "f8", "string": "O"}.get(word, word))


def _difference(name: str, found: np.ndarray, expected: np.ndarray) -> OutputError:
    if found.shape != expected.shape or found.dtype != expected.dtype:
        raise ExecutionError(
            f"output {name!r} is {found.dtype} {list(found.shape)}; the whole model makes "
            f"{expected.dtype} {list(expected.shape)}"
        )
    if not np.issubdtype(expected.dtype, np.number):
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
    return OutputError(name, float(gap.max()), float((gap / np.maximum(size, floor)).max()))
