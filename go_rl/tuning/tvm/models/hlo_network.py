"""`HloNetwork`: a program of StableHLO, from a file or of a JAX function, as TVM takes it."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from math import prod
from pathlib import Path
from typing import Any

import numpy as np

from go_rl.graphs.readers.hlo.stablehlo.stablehlo_bytecode import (
    is_stablehlo_bytecode,
    plain_module,
)
from go_rl.graphs.readers.recognise import Format
from go_rl.tuning.config import TuningError
from go_rl.tuning.tvm.models.model import ModelInput, Rival
from go_rl.tuning.tvm.stablehlo.translation import main_of, relax_of, type_of

SMALL, TABLES = ("bias", "mean", "beta"), ("embed",)
"""Parts of names of weights."""
Results = Callable[[Sequence[np.ndarray]], list[np.ndarray]]


@dataclass(frozen=True, eq=False)
class HloNetwork:
    """Program of StableHLO with its weights."""

    name: str
    program: Any
    """Module of MLIR, in StableHLO."""
    inputs: tuple[ModelInput, ...]
    weights: Mapping[int, np.ndarray]
    """Arguments of ``main`` that are weights, by position; the others are the inputs, in order."""
    compute: Results
    """Function that computes by XLA what the network computes."""

    def relax(self) -> Any:
        return relax_of(self.program, self.weights)

    def unfixed_shape(self) -> str:
        """Return "": all shapes of StableHLO that is read are numbers."""
        return ""

    def rivals(self, folder: Path) -> tuple[list[Rival], list[str]]:
        """Write the program for XLA, the only rival."""
        path, weights = folder / "rival.mlir", folder / "rival.npz"
        with path.open("wb") as file:
            self.program.operation.write_bytecode(file)
        arrays: dict[str, Any] = {str(i): array for i, array in self.weights.items()}
        np.savez(weights, **arrays)
        absent = "ONNX Runtime is not timed beside it: the model is no ONNX file"
        return [Rival("XLA", "stablehlo", str(path), str(weights))], [absent]

    def results(self, operands: Sequence[np.ndarray]) -> list[np.ndarray]:
        """Return the results, computed by XLA."""
        return self.compute(operands)


def random_weight(
    name: str, shape: tuple[int, ...], dtype: str, rng: np.random.Generator
) -> np.ndarray:
    """Return a weight for a network that has none.

    Matrices and kernels are normal, with the variance of He et al. (2015) for as many summands as
    the dimensions but the last make; embeddings have the variance 1, and what is called a bias or a
    mean 0.01. Other vectors, which may be variances, lie in [0.5, 1.5).
    """
    if not np.issubdtype(np.dtype(dtype), np.floating):
        return np.asarray(rng.integers(0, 2, shape), dtype)
    if _named(name, SMALL):
        return np.asarray(0.1 * rng.standard_normal(shape, np.float32), dtype)
    if len(shape) < 2:
        return np.asarray(0.5 + rng.random(shape), dtype)
    if _named(name, TABLES):
        return rng.standard_normal(shape, np.float32).astype(dtype)
    scale = np.sqrt(2.0 / max(prod(shape[:-1]), 1))
    return (scale * rng.standard_normal(shape, np.float32)).astype(dtype)


def _named(name: str, words: Collection[str]) -> bool:
    return any(word in name.rpartition("/")[2].lower() for word in words)


def read_hlo_network(
    path: Path, form: Format, weights: Collection[int] = (), seed: int = 0
) -> HloNetwork:
    """Read a program of XLA.

    Args:
        path: file in HLO text or StableHLO, which its reader accepts.
        form: which of the two it is.
        weights: positions of the parameters that are weights; they get random ones.
        seed: of these.

    Raises:
        ReadError: XLA cannot read it.
        TuningError: a parameter is of another type than those that are tuned, or there are fewer.
    """
    from jax._src.interpreters.mlir import make_ir_context
    from jaxlib.mlir import ir

    content = _stablehlo(path, form)
    with make_ir_context() as context:
        program = ir.Module.parse(content, context)
    types = [type_of(each) for each in main_of(program).regions[0].blocks[0].arguments]
    if beyond := [i for i in weights if i >= len(types)]:
        raise TuningError(
            f"{path}: weight-args names parameter {beyond[0]}, and there are {len(types)}"
        )
    rng = np.random.default_rng(seed)
    kept = {i: random_weight("", *types[i], rng) for i in sorted(set(weights))}
    free = [i for i in range(len(types)) if i not in kept]
    inputs = tuple(ModelInput(f"parameter{i}", *types[i]) for i in free)

    def compute(operands: Sequence[np.ndarray]) -> list[np.ndarray]:
        given = {**kept, **dict(zip(free, operands, strict=True))}
        return _run(content, [given[i] for i in range(len(types))])

    return HloNetwork(path.stem, program, inputs, kept, compute)


def _stablehlo(path: Path, form: Format) -> str | bytes:
    """The program as text or bytecode; its reader, in a guarded process, says what is wrong."""
    from go_rl.graphs.readers.load import load

    load(path, unknown="bytes")
    content = path.read_bytes()
    if is_stablehlo_bytecode(content):
        return plain_module(content)
    text = content.decode("utf-8")
    if form is Format.STABLEHLO:
        return text
    # jax exports no public way from HLO text to MLIR.
    from jaxlib import _hlo, _jax  # pyright: ignore[reportAttributeAccessIssue]

    module = _hlo.hlo_module_from_text(text)
    computation = _hlo.XlaComputation(module.as_serialized_hlo_module_proto())
    return str(_jax.mlir.xla_computation_to_mlir_module(computation))


def _run(program: str | bytes, operands: Sequence[np.ndarray]) -> list[np.ndarray]:
    """The results of a program of StableHLO, by XLA on this processor."""
    return [np.asarray(each) for each in compiled_by_xla(program, operands)()]


def compiled_by_xla(
    program: str | bytes, operands: Sequence[np.ndarray]
) -> Callable[[], list[Any]]:
    """Return a program of StableHLO, compiled by XLA for this processor, as a call that returns its
    results once they are there.

    Args:
        program: text or byte code.
        operands: all of its arguments.
    """
    import jax
    from jaxlib import _jax  # pyright: ignore[reportAttributeAccessIssue]

    device = jax.local_devices(backend="cpu")[0]
    compiled = device.client.compile_and_load(
        program, _jax.DeviceList((device,)), _jax.CompileOptions()
    )
    given = [jax.device_put(each, device) for each in operands]

    def run() -> list[Any]:
        found = compiled.execute_sharded(given).disassemble_into_single_device_arrays()
        return [each[0].block_until_ready() for each in found]

    return run
