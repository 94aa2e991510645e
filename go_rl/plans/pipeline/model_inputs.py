"""Inputs of a model: those of a user's file, or drawn by type and shape."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator, Mapping
from pathlib import Path

import numpy as np
import onnx

from go_rl.core import ExecutionError
from go_rl.core.errors import nearest
from go_rl.core.printable import reason
from go_rl.plans.stages.manifest import FROM_USER, Manifest, StageTensor
from go_rl.runtime.array_file import UNREADABLE, read_arrays

IDS = 8
"""Whole numbers are drawn below it: they may be indices."""


def model_inputs(
    manifest: Manifest, folder: Path, file: Path | None, dims: Mapping[str, int], seed: int
) -> dict[str, np.ndarray]:
    """Return an array for each input of the model, weights that no program holds included.

    Args:
        manifest: of the stages.
        folder: of the manifest; arrays of the user's own example that lie there are taken, and
            weights of which there are none are drawn.
        file: ``.npz`` with an array by input; None: numbers are drawn.
        dims: sizes of the dimensions that the model leaves open, beside those of the plan.
        seed: of the drawn numbers.

    Raises:
        ExecutionError: an input or a size is missing, an array is of another type or shape, or a
            dimension is none of the model's.
    """
    wanted = _wanted(manifest)
    _check_dims(dims, {*manifest.dims, *_open_dims(wanted)})
    found = {} if manifest.arrays is None else _arrays(folder / manifest.arrays, wanted)
    if file is not None:
        found |= _read(file, wanted, found)
    sizes, rng = {**manifest.dims, **dims}, np.random.default_rng(seed)
    left = {name: each for name, each in wanted.items() if name not in found}
    return found | {name: _drawn(tensor, sizes, rng) for name, tensor in left.items()}


def _wanted(manifest: Manifest) -> dict[str, StageTensor]:
    given = (t for stage in manifest.stages for t in stage.inputs if t.sender == FROM_USER)
    return {tensor.name: tensor for tensor in given}


def _open_dims(wanted: Mapping[str, StageTensor]) -> Iterator[str]:
    """Names that `_size` takes a size by."""
    for name, tensor in wanted.items():
        for axis, extent in enumerate(tensor.shape or ()):
            if not isinstance(extent, int):
                yield from ([extent] if extent else [])
                yield f"{name}_{axis}"


def _check_dims(dims: Mapping[str, int], known: Collection[str]) -> None:
    for name in dims:
        if name not in known:
            there = nearest(name, known) if known else "; it leaves none open"
            raise ExecutionError(f"--dim {name}: the model has no such dimension{there}")


def _dtype(tensor: StageTensor) -> np.dtype:
    return onnx.helper.tensor_dtype_to_np_dtype(
        onnx.TensorProto.DataType.Value(tensor.element_type)
    )


def _arrays(file: Path, wanted: Mapping[str, StageTensor]) -> dict[str, np.ndarray]:
    """The arrays of a file, those that `StageFolder.write_arrays` wrote as bytes as they were."""
    try:
        found = read_arrays(file)
    except UNREADABLE as error:
        raise ExecutionError(
            f"{file}: cannot be read as an .npz of arrays ({reason(error)})"
        ) from error
    for name, array in found.items():
        if name in wanted and array.dtype == np.uint8 and array.dtype != _dtype(wanted[name]):
            found[name] = array.view(_dtype(wanted[name]))[..., 0]
        elif array.dtype.kind == "U":  # ONNX's text is of objects, which no .npz holds
            found[name] = array.astype(np.object_)
    return found


def _read(
    file: Path, wanted: Mapping[str, StageTensor], there: Collection[str]
) -> dict[str, np.ndarray]:
    """The arrays of a user's file, which has all inputs that are not there and are no weights."""
    found = _arrays(file, wanted)
    for name in found:
        if name not in wanted:
            raise ExecutionError(f"{file}: the model has no input {name!r}{nearest(name, wanted)}")
    for name, tensor in wanted.items():
        if name not in found and name not in there and not tensor.is_weight:
            raise ExecutionError(f"{file}: has no array {name!r}, an input of the model")
        if name in found and found[name].dtype != _dtype(tensor):
            raise ExecutionError(
                f"{file}: {name!r} is of type {found[name].dtype}; the model wants {_dtype(tensor)}"
            )
        if name in found and not _fits(found[name].shape, tensor.shape):
            wants = ", ".join(str(each or "any") for each in tensor.shape or ())
            raise ExecutionError(
                f"{file}: {name!r} has the shape {found[name].shape}; the model wants ({wants})"
            )
    return found


def _fits(shape: tuple[int, ...], stated: tuple[int | str | None, ...] | None) -> bool:
    """Whether a shape is one that a model's input may have."""
    if stated is None:
        return True
    pairs = zip(shape, stated, strict=False)
    return len(shape) == len(stated) and all(n == e for n, e in pairs if isinstance(e, int))


def _drawn(tensor: StageTensor, sizes: Mapping[str, int], rng: np.random.Generator) -> np.ndarray:
    shape = tuple(_size(tensor, axis, extent, sizes) for axis, extent in enumerate(_shape(tensor)))
    dtype = _dtype(tensor)
    if dtype == np.bool_:
        return rng.integers(0, 2, shape).astype(dtype)
    if np.issubdtype(dtype, np.integer):
        return rng.integers(0, IDS, shape).astype(dtype)
    if dtype.hasobject:
        raise ExecutionError(f"input {tensor.name!r} is text, which is not drawn: give --inputs")
    drawn = rng.standard_normal(shape)
    if tensor.is_weight:  # products keep their size, and variances, which are vectors, are positive
        drawn = (
            np.abs(drawn) if len(shape) < 2 else drawn / max(math.sqrt(math.prod(shape[:-1])), 1)
        )
    return drawn.astype(dtype)


def _shape(tensor: StageTensor) -> tuple[int | str | None, ...]:
    if tensor.shape is None:
        raise ExecutionError(f"input {tensor.name!r} has no stated rank: give --inputs FILE.npz")
    return tensor.shape


def _size(
    tensor: StageTensor, axis: int, extent: int | str | None, sizes: Mapping[str, int]
) -> int:
    if isinstance(extent, int):
        return extent
    for name in (extent, f"{tensor.name}_{axis}"):
        if name is not None and name in sizes:
            return sizes[name]
    said = extent or f"{tensor.name}_{axis}"
    raise ExecutionError(f"input {tensor.name!r}: give the size of {said}: --dim {said}=8")
