"""Headers of safetensors beside a configuration: names and shapes, never the tensors.

A file begins with eight bytes, the length of its header (little-endian), then the header as JSON:
``{name: {"dtype", "shape", "data_offsets"}}``. An index of several files names them by tensor.
"""

from __future__ import annotations

from collections.abc import Mapping
from math import prod
from pathlib import Path
from typing import Any, TypeGuard

from go_rl.core.errors import NAMED, ReadError
from go_rl.core.files.strict_json import parse_json, read_json, shown
from go_rl.graphs.readers.cost import Tensor

LARGEST_HEADER = 100_000_000
"""Bytes of a header, the limit of the format."""
INDEX, WHOLE = "model.safetensors.index.json", "model.safetensors"
_BYTES = {"F64": 8, "F32": 4, "F16": 2, "BF16": 2, "I64": 8, "I32": 4, "I16": 2, "I8": 1, "U8": 1,
          "BOOL": 1, "F8_E4M3": 1, "F8_E5M2": 1}  # fmt: skip
_TYPES = {"F64": "float64", "F32": "float32", "F16": "float16", "BF16": "bfloat16",
          "F8_E4M3": "float8_e4m3fn", "F8_E5M2": "float8_e5m2"}  # fmt: skip
"""Names of ``torch_dtype``."""
Shape = tuple[int, ...]


def check_stored(
    folder: Path, element: str, expected: Mapping[str, Tensor], is_part: bool
) -> list[str]:
    """Compare the arrays of a network with the headers in its folder.

    Args:
        folder: of the configuration.
        element: name of the element type that the graph counts.
        expected: type of each array of the network, by name.
        is_part: whether the graph is a part of the model only.

    Returns:
        Notes: what was compared, and an element type that differs; none without safetensors.

    Raises:
        ReadError: a damaged header, an array of the network that is missing or has another shape.
    """
    found = _headers(folder)
    if found is None:
        return []
    where, stored, types = found
    names = {name: _stored_name(name, stored) for name in expected}
    missing = [name for name, there in names.items() if there is None]
    if missing:
        more = "" if len(missing) <= NAMED else f" and {len(missing) - NAMED} more"
        raise ReadError(
            f"{where}: {', '.join(missing[:NAMED])}{more} not there, and config.json says so; they "
            "are of two models"
        )
    for name, there in names.items():
        if there is not None and stored[there] != expected[name].shape:
            raise ReadError(
                f"{where}: {there} has shape {list(stored[there])}, and config.json makes it "
                f"{list(expected[name].shape)}"
            )
    others = set(stored).difference(filter(None, names.values()))
    notes = [f"{where}: {len(names)} arrays as in the configuration"]
    if others and not is_part:
        size = sum(prod(stored[name]) for name in others)
        notes.append(f"{where}: {len(others)} other arrays, {size} elements, not in the graph")
    differing = sorted({_TYPES.get(types[t], types[t]) for t in names.values() if t} - {element})
    if differing:
        notes.append(f"{where}: stored as {', '.join(differing)}; the graph counts {element}")
    return notes


def _stored_name(name: str, stored: Mapping[str, Shape]) -> str | None:
    """Return the name in the file, where that of the base model may be left out."""
    short = name.partition(".")[2]
    tried = [each for whole in (name, short) for each in (whole, _older(whole))]
    return next((each for each in tried if each in stored), None)


def _older(name: str) -> str:
    """Return the name that files made from TensorFlow's have."""
    for new, old in (("LayerNorm.weight", "LayerNorm.gamma"), ("LayerNorm.bias", "LayerNorm.beta")):
        if name.endswith(new):
            return name.removesuffix(new) + old
    return name


def _headers(folder: Path) -> tuple[str, dict[str, Shape], dict[str, str]] | None:
    """Return the file named in messages, shapes and element types; None: there is no file."""
    index, whole = folder / INDEX, folder / WHOLE
    if not (index.is_file() or whole.is_file()):
        return None
    files = [whole] if whole.is_file() else _indexed(index)
    shapes: dict[str, Shape] = {}
    types: dict[str, str] = {}
    for file in files:
        for name, entry in _header(file).items():
            if name != "__metadata__":
                shapes[name], types[name] = _checked(file, name, entry)
    return str(whole if whole.is_file() else index), shapes, types


def _indexed(index: Path) -> list[Path]:
    try:
        listed = read_json(index)
    except (OSError, ValueError) as error:
        raise ReadError(f"{index}: not an index of safetensors ({error})") from error
    places = listed.get("weight_map") if isinstance(listed, dict) else None
    if not isinstance(places, dict) or not all(isinstance(p, str) for p in places.values()):
        raise ReadError(f"{index}: weight_map must name a file for each array")
    names = sorted(set(places.values()))
    for name in names:
        if Path(name).name != name:
            raise ReadError(f"{index}: weight_map names {shown(name)}, outside its folder")
        if not (index.parent / name).is_file():
            raise ReadError(f"{index}: weight_map names {shown(name)}, which is not there")
    return [index.parent / name for name in names]


def _header(path: Path) -> dict[str, Any]:
    try:
        with path.open("rb") as file:
            length = int.from_bytes(file.read(8), "little")
            if length > LARGEST_HEADER:
                raise ReadError(f"{path}: a header of {length} bytes, more than the format allows")
            content = file.read(length)
        header = parse_json(content)
    except (OSError, ValueError) as error:
        raise ReadError(f"{path}: not safetensors ({error})") from error
    if len(content) < length or not isinstance(header, dict):
        raise ReadError(f"{path}: a truncated or damaged header")
    return header


def _checked(path: Path, name: str, entry: Any) -> tuple[Shape, str]:
    """Return shape and element type of one array, whose bytes must be those of both."""
    fields = entry if isinstance(entry, dict) else {}
    kind, shape, ends = (fields.get(key) for key in ("dtype", "shape", "data_offsets"))
    if (
        isinstance(kind, str)
        and _are_sizes(shape)
        and _are_sizes(ends)
        and len(ends) == 2
        and ends[1] - ends[0] == prod(shape) * _BYTES.get(kind, -1)
    ):
        return tuple(shape), kind
    raise ReadError(
        f"{path}: {shown(name)}: dtype {shown(kind)}, shape {shown(shape)} and data_offsets "
        f"{shown(ends)} do not fit"
    )


def _are_sizes(value: Any) -> TypeGuard[list[int]]:
    return isinstance(value, list) and all(type(each) is int and each >= 0 for each in value)
