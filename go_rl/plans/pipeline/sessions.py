"""`open_session`: a program of a stage, or the whole model, ready to run by what its manifest
names."""

# pyright: reportMissingImports=false

from __future__ import annotations

import importlib
import os
import re
from abc import ABC, abstractmethod
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np

from go_rl.core import MissingDependencyError
from go_rl.core.printable import counted, first_line

INSTALL = {"onnxruntime": "go_rl[onnxruntime]", "jax": "go_rl", "torch": "go_rl[torch]"}
"""Requirement that pip installs, by runtime."""
OPTIMISED = ".optimised.onnx"
"""Ends the name of the model that onnxruntime made of a stage."""
Arrays = Mapping[str, np.ndarray]


@dataclass(frozen=True)
class InputType:
    """Input of a program."""

    shape: tuple[int, ...]
    """Each open extent is 1, or as in the example that the program was made with."""
    dtype: np.dtype
    fixed: tuple[int | None, ...] | None
    """Extents that the program fixes, None for an open one; None: the rank may be open as well."""

    def __str__(self) -> str:
        if self.fixed is None:
            return f"{self.dtype}"
        return f"{self.dtype} [{', '.join('any' if n is None else str(n) for n in self.fixed)}]"

    def takes(self, array: np.ndarray) -> bool:
        """Return whether an array has the type and a shape of the input."""
        if array.dtype != self.dtype:
            return False
        if self.fixed is None:
            return True
        pairs = zip(array.shape, self.fixed, strict=False)
        return array.ndim == len(self.fixed) and all(e in (None, n) for n, e in pairs)

    def zeros(self) -> np.ndarray:
        """Return zeros."""
        return np.zeros(self.shape, self.dtype)


@dataclass(frozen=True)
class StageRecord:
    """Files that onnxruntime wrote of one sample of a stage, and the process that ran it."""

    profile: Path
    optimised: Path
    process: int
    cores: tuple[int, ...]
    """Cores that the process may use."""


class Session(ABC):
    """A program that runs."""

    inputs: Mapping[str, InputType]
    outputs: Collection[str] | None
    """Names of all results that the program has; None: it has them in order, without names."""

    def hold(self, arrays: Arrays) -> Mapping[str, Any]:
        """Return arrays in the form in which they are given again and again."""
        return arrays

    def use_threads(self, count: int) -> None:
        """Change the threads of one operator; where the runtime cannot, nothing."""
        del count

    def end_record(self) -> StageRecord | None:
        """End the records of what runs, and return where they are; None: there are none."""
        return None

    @abstractmethod
    def run(self, feeds: Mapping[str, Any]) -> dict[str, np.ndarray]:
        """Return all outputs by name, computed; ``feeds`` may hold more than the inputs."""


def check_runtime(runtime: str) -> None:
    """Raise a `MissingDependencyError` where a runtime cannot be imported."""
    try:
        importlib.import_module(runtime)
    except ImportError as error:
        raise MissingDependencyError(
            f"stages are run by {runtime}, which cannot be imported ({error}); install it with "
            f"pip install '{INSTALL[runtime]}'"
        ) from error


def open_session(
    runtime: str,
    file: str | Path,
    outputs: Sequence[str],
    threads: int,
    as_written: bool,
    records: Path | None = None,
) -> Session:
    """Return a program that runs.

    Args:
        runtime: one of `go_rl.plans.stages.manifest.RUNTIMES`.
        file: of the program.
        outputs: names of its results, in order.
        threads: of one operator; XLA has one a core that the process may use.
        as_written: onnxruntime joins no operators.
        records: beginning of the names of files to which onnxruntime writes the optimised model
            and, until `Session.end_record`, the kernels that run; None: neither.
    """
    match runtime:
        case "onnxruntime":
            return _OnnxSession(str(file), outputs, threads, as_written, records)
        case "jax":
            return _JaxSession(Path(file), outputs)
        case _:
            return _TorchSession(str(file), outputs, threads)


class _OnnxSession(Session):
    """A session of onnxruntime."""

    def __init__(
        self, file: str, outputs: Sequence[str], threads: int, as_written: bool,
        records: Path | None,
    ) -> None:  # fmt: skip
        import onnxruntime

        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = threads
        options.inter_op_num_threads = 1
        options.log_severity_level = 3
        if as_written:
            level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
            options.graph_optimization_level = level
        if records is not None:
            options.enable_profiling = True
            options.profile_file_prefix = str(records)
            options.optimized_model_filepath = f"{records}{OPTIMISED}"
            prefix = "session.optimized_model_external_initializers_"
            data = f"{records.name}{OPTIMISED}.data"
            options.add_session_config_entry(f"{prefix}file_name", data)
            options.add_session_config_entry(f"{prefix}min_size_in_bytes", "1024")
        self._records = records
        providers = ["CPUExecutionProvider"]
        self._session = onnxruntime.InferenceSession(file, options, providers=providers)
        self.inputs = {value.name: _onnx_type(value) for value in self._session.get_inputs()}
        self.outputs = [value.name for value in self._session.get_outputs()]
        self._wanted = list(outputs)

    def run(self, feeds: Mapping[str, Any]) -> dict[str, np.ndarray]:
        given = {name: feeds[name] for name in self.inputs}
        made = self._session.run(self._wanted, given)
        return {name: np.asarray(each) for name, each in zip(self._wanted, made, strict=True)}

    def end_record(self) -> StageRecord | None:
        if self._records is None:
            return None
        return StageRecord(
            Path(self._session.end_profiling()), Path(f"{self._records}{OPTIMISED}"), os.getpid(),
            tuple(sorted(os.sched_getaffinity(0))),
        )  # fmt: skip


def short_reason(error: Exception) -> str:
    """Return what a runtime says, without its codes and places."""
    said = first_line(error)
    absent = re.search(r'External data path does not exist: "?([^"]+)', said)
    if absent is not None:
        return f"its arrays lie in {absent[1]}, which is not there"
    return re.sub(r"^.*\[ONNXRuntimeError\] : \d+ : \w+ : ", "", said)


def _onnx_type(value: Any) -> InputType:
    word = value.type.removeprefix("tensor(").removesuffix(")")
    shape = tuple(extent if isinstance(extent, int) else 1 for extent in value.shape)
    dtype = np.dtype(_ONNX_WORDS.get(word, word))
    return InputType(
        shape, dtype, _fixed(value.shape) or None
    )  # it shows a scalar and an open rank alike


_ONNX_WORDS = {"float": "float32", "double": "float64", "string": "object"}
"""Element types of which onnxruntime's names are not NumPy's."""


class _JaxSession(Session):
    """A program of `jax.export`, compiled for the processor."""

    def __init__(self, file: Path, outputs: Sequence[str]) -> None:
        import jax

        with jax.enable_x64(True):  # programs have the types that they were made with
            program = jax.export.deserialize(bytearray(file.read_bytes()))
        (types,), _ = jax.tree.unflatten(program.in_tree, program.in_avals)
        self.inputs = {
            name: InputType(each.shape, np.dtype(each.dtype), _fixed(each.shape))
            for name, each in types.items()
        }
        results = jax.tree.unflatten(program.out_tree, program.out_avals)
        self.outputs = list(results) if isinstance(results, dict) else []
        self._call, self._jax, self._wanted = jax.jit(program.call), jax, outputs
        self._device = jax.devices("cpu")[0]

    def hold(self, arrays: Arrays) -> Mapping[str, Any]:
        with self._jax.enable_x64(True):
            return self._jax.device_put(dict(arrays), self._device)

    def run(self, feeds: Mapping[str, Any]) -> dict[str, np.ndarray]:
        with self._jax.enable_x64(True):
            given = {name: feeds[name] for name in self.inputs}
            made = self._call(self._jax.device_put(given, self._device))
            return {name: np.asarray(made[name]) for name in self._wanted}


class _TorchSession(Session):
    """A program of `torch.export`, run operator by operator."""

    def __init__(self, file: str, outputs: Sequence[str], threads: int) -> None:
        import torch
        from torch.utils._pytree import tree_flatten, tree_unflatten

        from go_rl.plans.stages.torch_program import load_program

        self._torch = torch
        self.use_threads(threads)
        program = load_program(Path(file))
        values = {n.name: n.meta["val"] for n in program.graph.nodes if n.op == "placeholder"}
        names = map(str, program.graph_signature.user_inputs)
        self.inputs = {name: _torch_type(values[name]) for name in names}
        self.outputs, self._wanted = None, outputs
        self._module = program.module()
        self._arguments = lambda flat: tree_unflatten(flat, program.call_spec.in_spec)
        self._leaves = lambda tree: tree_flatten(tree)[0]

    def use_threads(self, count: int) -> None:
        self._torch.set_num_threads(count)

    def hold(self, arrays: Arrays) -> Mapping[str, Any]:
        return {name: self._tensor(array) for name, array in arrays.items()}

    def run(self, feeds: Mapping[str, Any]) -> dict[str, np.ndarray]:
        given = (feeds[name] for name in self.inputs)
        flat = [self._tensor(x) if isinstance(x, np.ndarray) else x for x in given]
        args, kwargs = self._arguments(flat)
        with self._torch.no_grad():
            leaves = self._leaves(self._module(*args, **kwargs))
        made = [leaf for leaf in leaves if leaf is not None]
        if len(made) != len(self._wanted):
            raise ValueError(f"it makes {counted(len(made), 'result')}, not {len(self._wanted)}")
        return {name: self._array(each) for name, each in zip(self._wanted, made, strict=True)}

    def _tensor(self, array: np.ndarray) -> Any:
        """A copy of an array; those in shared memory are written again."""
        if array.dtype == ml_dtypes.bfloat16:
            return self._torch.tensor(array.view(np.int16)).view(self._torch.bfloat16)
        return self._torch.tensor(array)

    def _array(self, tensor: Any) -> np.ndarray:
        tensor = tensor.contiguous()
        if tensor.dtype == self._torch.bfloat16:
            return tensor.view(self._torch.int16).numpy().view(ml_dtypes.bfloat16)
        return tensor.numpy()


def _torch_type(value: Any) -> InputType:
    word = str(value.dtype).removeprefix("torch.")
    shape = tuple(int(extent) for extent in value.shape)
    return InputType(shape, np.dtype(word), _fixed(value.shape))


def _fixed(shape: Sequence[Any]) -> tuple[int | None, ...]:
    return tuple(extent if isinstance(extent, int) else None for extent in shape)
