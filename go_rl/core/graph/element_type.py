"""`ElementType`: the number formats in which operators compute."""

from __future__ import annotations

import re
from collections.abc import Iterable
from enum import IntEnum
from functools import cache, cached_property

from go_rl.core.graph.op_kind import PRODUCT_KINDS, OpKind


class ElementType(IntEnum):
    """Number format of a tensor's elements; signed and unsigned whole numbers are one, and so are
    all formats of eight-bit floating-point numbers."""

    UNKNOWN = 0
    FLOAT64 = 1
    FLOAT32 = 2
    BFLOAT16 = 3
    FLOAT16 = 4
    FLOAT8 = 5
    FLOAT4 = 6
    INT64 = 7
    INT32 = 8
    INT16 = 9
    INT8 = 10
    INT4 = 11
    BOOL = 12
    COMPLEX128 = 13
    COMPLEX64 = 14
    TF32 = 15
    """Elements of 32 bits whose products are computed of their first 19."""

    @property
    def label(self) -> str:
        """The name in documents and messages, such as ``bfloat16``."""
        return self.name.lower()

    @cached_property
    def bits(self) -> int:
        """Bits of an element: 8 of a truth value, 0 where the type is unknown."""
        found = re.search(r"\d+$", self.name)
        return int(found[0]) if found else 8 * (self is ElementType.BOOL)

    @cached_property
    def is_float(self) -> bool:
        """Whether its numbers have a fraction."""
        return self.name.startswith(("FLOAT", "BFLOAT", "TF", "COMPLEX"))


_WORDS = {
    "float": ElementType.FLOAT32, "single": ElementType.FLOAT32, "double": ElementType.FLOAT64,
    "half": ElementType.FLOAT16, "pred": ElementType.BOOL, "bool": ElementType.BOOL,
    "boolean": ElementType.BOOL, "i1": ElementType.BOOL,
}  # fmt: skip
"""Names without a number of bits, and one that means another type than its bits say."""
_FAMILIES = {
    "bfloat": "BFLOAT", "bf": "BFLOAT", "float": "FLOAT", "fp": "FLOAT", "f": "FLOAT",
    "complex": "COMPLEX", "c": "COMPLEX", "tf": "TF",
    **dict.fromkeys(("uint", "int", "ui", "i", "u", "s"), "INT"),
}  # fmt: skip
_NAME = re.compile(f"({'|'.join(_FAMILIES)})(\\d+)(?:_?e\\d+m\\d+\\w*)?")


@cache
def element_type(name: str) -> ElementType:
    """Return the type that frameworks call ``name``: NumPy's and PyTorch's ``bfloat16``, HLO's
    ``bf16`` and ``s32``, StableHLO's ``ui8``, ONNX's ``FLOAT8E4M3FN``; `ElementType.UNKNOWN` for
    texts, keys of random numbers, and whatever else is no number."""
    lower = name.lower()
    if lower in _WORDS:
        return _WORDS[lower]
    match = _NAME.fullmatch(lower)
    return ElementType.__members__.get(
        _FAMILIES[match[1]] + match[2] if match else "", ElementType.UNKNOWN
    )


def computing_type(
    kind: OpKind, operands: Iterable[tuple[ElementType, int]], results: Iterable[ElementType]
) -> ElementType:
    """Return the type in which an operator computes: the widest of its operands' floating-point
    types, else of their whole numbers; without operands that of its results.

    Of a product only its matrices count: a bias, and the scales of a quantised one, are vectors.

    Args:
        kind: of the operator.
        operands: type and rank of each.
        results: type of each.
    """
    rows = [each for each in operands if each[0] is not ElementType.UNKNOWN]
    matrices = [each for each in rows if each[1] > 1] if kind in PRODUCT_KINDS else []
    return _widest([each for each, _ in matrices or rows] or list(results))


def _widest(types: list[ElementType]) -> ElementType:
    floats = [each for each in types if each.is_float]
    return max(floats or types, key=lambda each: each.bits, default=ElementType.UNKNOWN)
