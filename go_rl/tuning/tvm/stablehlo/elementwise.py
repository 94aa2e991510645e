"""Element-wise operators of StableHLO."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any

import numpy as np

from go_rl.tuning.tvm.stablehlo.values import Emitter, HloCall, HloValue, Shape, Translate

_BINARY: Mapping[str, tuple[str, Callable[..., Any]]] = MappingProxyType({
    "add": ("add", np.add), "subtract": ("subtract", np.subtract),
    "multiply": ("multiply", np.multiply), "divide": ("divide", np.divide),
    "maximum": ("maximum", np.maximum), "minimum": ("minimum", np.minimum),
    "power": ("power", np.power), "remainder": ("mod", np.fmod), "atan2": ("atan2", np.arctan2),
})  # fmt: skip
"""Operators of Relax and of NumPy, by StableHLO's name."""
_LOGICAL: Mapping[str, tuple[str, Callable[..., Any]]] = MappingProxyType({
    "and": ("logical_and", np.logical_and), "or": ("logical_or", np.logical_or),
    "xor": ("logical_xor", np.logical_xor), "not": ("logical_not", np.logical_not),
})  # fmt: skip
_BITS: Mapping[str, tuple[str, Callable[..., Any]]] = MappingProxyType({
    "and": ("bitwise_and", np.bitwise_and), "or": ("bitwise_or", np.bitwise_or),
    "xor": ("bitwise_xor", np.bitwise_xor), "not": ("bitwise_not", np.bitwise_not),
    "shift_left": ("left_shift", np.left_shift),
    "shift_right_arithmetic": ("right_shift", np.right_shift),
})  # fmt: skip
_UNARY: Mapping[str, tuple[str, Callable[..., Any]]] = MappingProxyType({
    "abs": ("abs", np.abs), "ceil": ("ceil", np.ceil), "cosine": ("cos", np.cos),
    "exponential": ("exp", np.exp), "floor": ("floor", np.floor), "log": ("log", np.log),
    "negate": ("negative", np.negative),
    "rsqrt": ("rsqrt", lambda x: 1 / np.sqrt(x)), "sign": ("sign", np.sign),
    "sine": ("sin", np.sin), "sqrt": ("sqrt", np.sqrt), "tan": ("tan", np.tan),
    "tanh": ("tanh", np.tanh), "is_finite": ("isfinite", np.isfinite),
    "logistic": ("sigmoid", lambda x: 1 / (1 + np.exp(-x))),
    "square": ("square", np.square), "round_nearest_even": ("round", np.round),
    "sinh": ("sinh", np.sinh), "cosh": ("cosh", np.cosh), "atan": ("atan", np.arctan),
    "asin": ("asin", np.arcsin), "acos": ("acos", np.arccos), "asinh": ("asinh", np.arcsinh),
    "acosh": ("acosh", np.arccosh), "atanh": ("atanh", np.arctanh),
})  # fmt: skip
_CHLO = ("square", "tan", "sinh", "cosh", "atan", "asin", "acos", "asinh", "acosh", "atanh")
_COMPARE: Mapping[str, tuple[str, Callable[..., Any]]] = MappingProxyType({
    "EQ": ("equal", np.equal), "NE": ("not_equal", np.not_equal),
    "LT": ("less", np.less), "LE": ("less_equal", np.less_equal),
    "GT": ("greater", np.greater), "GE": ("greater_equal", np.greater_equal),
})  # fmt: skip


def operator_of(name: str) -> tuple[str, Callable[..., Any]]:
    """Return the operator of Relax and that of NumPy by StableHLO's name, or of a comparison by its
    direction; ``and``, ``or``, ``xor`` and ``not`` are those of truth values."""
    return _BINARY.get(name) or _LOGICAL.get(name) or _COMPARE.get(name) or _UNARY[name]


def applied(
    emitter: Emitter, names: tuple[str, Callable[..., Any]], *operands: HloValue, dtype: str
) -> HloValue:
    """Return an element-wise operator of operands of one shape.

    Args:
        emitter: of the function.
        names: the operator of Relax, and of NumPy where all operands are known.
        operands: of one shape.
        dtype: of the result.
    """
    shape = operands[0].shape
    if all(each.known for each in operands):
        with np.errstate(all="ignore"):
            made = np.asarray(names[1](*(each.made for each in operands)), dtype)
        return HloValue(made, shape, dtype)
    relax = getattr(emitter.op, names[0])
    made = emitter.bind(relax(*(emitter.narrow(each) for each in operands)))
    return HloValue(made, shape, dtype)


def _simple(call: HloCall, emitter: Emitter) -> tuple[HloValue, ...]:
    name = call.name.partition(".")[2]
    floats = call.dtype.startswith("float")
    if name == "maximum" and floats and not call.operands[0].known and _is_zero(call.operands[1]):
        made = emitter.bind(emitter.op.nn.relu(call.operands[0].made))
        return (HloValue(made, call.shape, call.dtype),)
    names = _BITS[name] if name in _BITS and call.dtype != "bool" else operator_of(name)
    return (applied(emitter, names, *call.operands, dtype=call.dtype),)


def _is_zero(value: HloValue) -> bool:
    number = value.number
    return number is not None and float(number) == 0.0


def direction_of(attributes: Any) -> str:
    """Return how a comparison compares, such as ``LT``, by its attributes."""
    return str(attributes["comparison_direction"]).split()[-1].rstrip(">")


def _compare(call: HloCall, emitter: Emitter) -> tuple[HloValue, ...]:
    direction = direction_of(call.attributes)
    if call.operands[0].dtype == "bool" and direction in ("EQ", "NE"):
        differ = applied(emitter, _LOGICAL["xor"], *call.operands, dtype="bool")
        if direction == "NE":
            return (differ,)
        return (applied(emitter, _LOGICAL["not"], differ, dtype="bool"),)
    return (applied(emitter, operator_of(direction), *call.operands, dtype="bool"),)


def _select(call: HloCall, emitter: Emitter) -> tuple[HloValue, ...]:
    chosen, one, other = call.operands
    chosen = _of_shape(chosen, one.shape, emitter)
    return (applied(emitter, ("where", np.where), chosen, one, other, dtype=call.dtype),)


def _clamp(call: HloCall, emitter: Emitter) -> tuple[HloValue, ...]:
    low, value, high = call.operands
    low, high = (_of_shape(each, value.shape, emitter) for each in (low, high))
    raised = applied(emitter, _BINARY["maximum"], value, low, dtype=call.dtype)
    return (applied(emitter, _BINARY["minimum"], raised, high, dtype=call.dtype),)


def _of_shape(value: HloValue, shape: Shape, emitter: Emitter) -> HloValue:
    """An array of a shape, or a lone element for each place of it."""
    if value.shape == shape:
        return value
    ones = (1,) * len(shape)
    made = value.made.reshape(ones) if value.known else emitter.reshaped(value.made, ones)
    return HloValue(made, shape, value.dtype)


def _convert(call: HloCall, emitter: Emitter) -> tuple[HloValue, ...]:
    return (converted(call.operands[0], call.dtype, emitter),)


def converted(value: HloValue, dtype: str, emitter: Emitter) -> HloValue:
    """Return an array in another element type."""
    if value.dtype == dtype:
        return value
    if value.known:
        return HloValue(value.made.astype(dtype), value.shape, dtype)
    return HloValue(emitter.bind(emitter.op.astype(value.made, dtype)), value.shape, dtype)


def _erf(call: HloCall, emitter: Emitter) -> tuple[HloValue, ...]:
    made = emitter.bind(emitter.op.erf(emitter.narrow(call.operands[0])))
    return (HloValue(made, call.shape, call.dtype),)


def _erfc(call: HloCall, emitter: Emitter) -> tuple[HloValue, ...]:
    """1 - erf(x)."""
    (found,) = _erf(call, emitter)
    return (applied(emitter, _BINARY["subtract"], _one(found), found, dtype=call.dtype),)


def _exponential_minus_one(call: HloCall, emitter: Emitter) -> tuple[HloValue, ...]:
    found = applied(emitter, _UNARY["exponential"], *call.operands, dtype=call.dtype)
    return (applied(emitter, _BINARY["subtract"], found, _one(found), dtype=call.dtype),)


def _log_plus_one(call: HloCall, emitter: Emitter) -> tuple[HloValue, ...]:
    (value,) = call.operands
    found = applied(emitter, _BINARY["add"], value, _one(value), dtype=call.dtype)
    return (applied(emitter, _UNARY["log"], found, dtype=call.dtype),)


def _cbrt(call: HloCall, emitter: Emitter) -> tuple[HloValue, ...]:
    """sign(x) |x|^(1/3)."""
    (value,) = call.operands
    sign, size = (
        applied(emitter, _UNARY[each], value, dtype=call.dtype) for each in ("sign", "abs")
    )
    third = HloValue(_one(value).made / np.float32(3), value.shape, value.dtype)
    root = applied(emitter, _BINARY["power"], size, third, dtype=call.dtype)
    return (applied(emitter, _BINARY["multiply"], sign, root, dtype=call.dtype),)


def _shift_right_logical(call: HloCall, emitter: Emitter) -> tuple[HloValue, ...]:
    unsigned = f"uint{call.dtype.removeprefix('u').removeprefix('int')}"
    given = (converted(each, unsigned, emitter) for each in call.operands)
    made = applied(emitter, _BITS["shift_right_arithmetic"], *given, dtype=unsigned)
    return (converted(made, call.dtype, emitter),)


def _one(like: HloValue) -> HloValue:
    return HloValue(np.ones((1,) * len(like.shape), like.dtype), like.shape, like.dtype)


RULES: Mapping[str, Translate] = MappingProxyType({
    **{f"stablehlo.{name}": _simple for name in (*_BINARY, *_LOGICAL, *_BITS, *_UNARY)},
    **{f"chlo.{name}": _simple for name in _CHLO},
    "chlo.erf": _erf,
    "chlo.erfc": _erfc, "stablehlo.exponential_minus_one": _exponential_minus_one,
    "stablehlo.log_plus_one": _log_plus_one, "stablehlo.cbrt": _cbrt,
    "stablehlo.shift_right_logical": _shift_right_logical,
    "stablehlo.compare": _compare, "stablehlo.select": _select, "stablehlo.clamp": _clamp,
    "stablehlo.convert": _convert,
})  # fmt: skip
"""Translations by name."""
