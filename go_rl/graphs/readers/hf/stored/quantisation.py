"""Stored bytes of matrices that a configuration says are quantised, scales included.

``quantization_config`` names a method: float8 of transformers and DeepSeek (blocks or whole
matrices with a scale), GPTQ and AWQ (groups of input channels with a scale and a zero point for
each output), bitsandbytes (rows of int8, blocks of 64 in 4 bits), MXFP4 (blocks of 32 in 4 bits).
MXFP4 stores the experts of gpt-oss, the others the linear layers of blocks and of projectors;
tables, normalisations, routers and the head stay as they are.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from math import ceil

from go_rl.core.errors import ReadError, nearest
from go_rl.graphs.readers.hf.family import Names
from go_rl.graphs.readers.hf.model_config import ModelConfig

FIELD = "quantization_config"
Shape = tuple[int, ...]
MatrixBytes = Callable[[int, int], float]
"""Bytes of a matrix of this many results and inputs."""
_FLOAT32, _FLOAT16, _INT32 = 4.0, 2.0, 4.0
_BLOCK_MXFP4 = 32
_BLOCK_4BIT, _BLOCK_SCALES = 64, 256
"""Elements of a scale, and scales of a scale of scales, of bitsandbytes."""
_IN_BLOCK = re.compile(r"\.\d+\.|_projector\.")


@dataclass(frozen=True)
class Quantisation:
    """Quantised arrays, and their bytes."""

    title: str
    """For notes."""
    itemsize: float
    """Bytes of an element of what is not quantised."""
    matrix_bytes: MatrixBytes
    kept: tuple[str, ...]
    """Ends of modules that are not quantised."""
    skipped: tuple[str, ...]
    """Parts of the names of modules that the configuration leaves out."""
    stacked: bool = False
    """Whether it stores arrays of the matrices of all experts, ``[experts, inputs, results]``, and
    nothing else."""

    def holds(self, name: str, shape: Shape) -> bool:
        """Return whether an array is quantised."""
        if self.stacked:
            return len(shape) == 3 and ".experts." in name
        module = name.removesuffix(".weight")
        is_matrix = module != name and len(shape) == 2 and _IN_BLOCK.search(name) is not None
        return is_matrix and not (
            any(module.endswith(f".{end}") for end in self.kept)
            or any(part in module for part in self.skipped)
        )

    def element_bytes(self, name: str, shape: Shape) -> float:
        """Return bytes of an element of a stored array, with its share of the scales."""
        if not self.holds(name, shape):
            return self.itemsize
        results, width = shape[-2:] if not self.stacked else shape[:0:-1]
        return self.matrix_bytes(results, width) / (results * width)


def quantisation(
    config: ModelConfig, names: Names, itemsize: float, only: tuple[str, ...] = ()
) -> Quantisation | None:
    """Return what is quantised; None where the configuration says nothing.

    Args:
        config: the whole configuration.
        names: modules of the stack.
        itemsize: bytes of an element of what is not quantised.
        only: parts of the names of modules that GPTQ and AWQ leave out.

    Raises:
        ReadError: a method or setting that is not read.
    """
    if not config.has(FIELD):
        return None
    fields = config.fields[config.name(FIELD)]
    if not isinstance(fields, dict):
        raise config.wrong(FIELD, "an object")
    inside = ModelConfig(f"{config.where}: {FIELD}", fields, {})
    method = inside.text("quant_method")
    if method not in _METHODS:
        raise ReadError(
            f"{inside.where}: quant_method {method!r} is not read{nearest(method, _METHODS)} Known "
            f"are {', '.join(_METHODS)}"
        )
    found = _METHODS[method](inside)
    if found.stacked and not names.stacked:
        raise inside.wrong("quant_method", "another: no array here has the matrices of all experts")
    kept = tuple(filter(None, (names.router, names.shared_gate, names.bias_table)))
    skipped = found.skipped + (only if method in ("gptq", "awq") else ())
    return replace(found, itemsize=itemsize, kept=kept, skipped=skipped)


def _method(title: str, matrix_bytes: MatrixBytes, skipped: list[str]) -> Quantisation:
    return Quantisation(title, 0.0, matrix_bytes, (), tuple(skipped))


def _float8(config: ModelConfig) -> Quantisation:
    """Bytes, and a float32 scale for each block, or for each matrix; another for static inputs."""
    block = config.numbers("weight_block_size")
    if block and (len(block) != 2 or min(block) < 1):
        raise config.wrong("weight_block_size", "two sizes")
    scheme = config.text("activation_scheme", "dynamic")
    if scheme not in ("dynamic", "static"):
        raise config.wrong("activation_scheme", "'dynamic' or 'static'")
    inputs = _FLOAT32 * (scheme == "static")

    def matrix_bytes(results: int, width: int) -> float:
        rows, columns = block or (results, width)
        scales = ceil(results / rows) * ceil(width / columns)
        return results * width + _FLOAT32 * scales + inputs

    blocks = " x ".join(map(str, block)) if block else "whole matrices"
    return _method(f"float8, scales of {blocks}", matrix_bytes, _skipped(config))


def _grouped(config: ModelConfig, order: bool) -> Quantisation:
    """Whole words of int32 with weights, and for each group and result a float16 scale and a zero
    point; GPTQ has the group of each input, too."""
    bits = config.count("bits", most=8)
    if bits not in (2, 3, 4, 8):
        raise config.wrong("bits", "2, 3, 4 or 8")
    stated = config.fields.get("group_size", 128)
    whole = stated == -1
    size = 0 if whole else config.count("group_size", 128)
    has_zeros = config.flag("zero_point", True) if not order else True

    def matrix_bytes(results: int, width: int) -> float:
        groups = 1 if whole else ceil(width / size)
        zeros = results * bits / 8 * has_zeros
        scales = groups * (results * _FLOAT16 + zeros)
        return results * width * bits / 8 + scales + _INT32 * width * order

    name = "GPTQ" if order else "AWQ"
    groups = "all inputs" if whole else f"{size} inputs"
    return _method(f"{name}, {bits} bits, groups of {groups}", matrix_bytes, _skipped(config))


def _mxfp4(config: ModelConfig) -> Quantisation:
    """Halves of bytes, and a byte of scale for each 32 inputs of a result."""

    def matrix_bytes(results: int, width: int) -> float:
        return results * (width / 2 + ceil(width / _BLOCK_MXFP4))

    found = _method("MXFP4, matrices of experts", matrix_bytes, _skipped(config))
    return replace(found, stacked=True)


def _bits_and_bytes(config: ModelConfig) -> Quantisation:
    """Rows of int8 with a float32 scale; or halves of bytes with a float32 scale for each 64, or
    an 8-bit one, and a float32 one for each 256 of those."""
    skipped = _skipped(config, "llm_int8_skip_modules")
    if config.flag("load_in_8bit", False):
        return _method("bitsandbytes, 8 bits", lambda r, w: r * w + _FLOAT32 * r, skipped)
    if not config.flag("load_in_4bit", False):
        raise ReadError(f"{config.where}: one of load_in_8bit and load_in_4bit must be true")
    is_double = config.flag("bnb_4bit_use_double_quant", False)

    def matrix_bytes(results: int, width: int) -> float:
        scales = ceil(results * width / _BLOCK_4BIT)
        outer = ceil(scales / _BLOCK_SCALES)
        each = scales + _FLOAT32 * outer if is_double else _FLOAT32 * scales
        return results * width / 2 + each

    return _method("bitsandbytes, 4 bits", matrix_bytes, skipped)


def _skipped(config: ModelConfig, field: str = "modules_to_not_convert") -> list[str]:
    value = config.fields.get(field) or []
    if not isinstance(value, list) or not all(isinstance(each, str) and each for each in value):
        raise config.wrong(field, "a list of names of modules")
    return value


_METHODS: Mapping[str, Callable[[ModelConfig], Quantisation]] = {
    "fp8": _float8,
    "gptq": partial(_grouped, order=True),
    "awq": partial(_grouped, order=False),
    "bitsandbytes": _bits_and_bytes,
    "mxfp4": _mxfp4,
}
