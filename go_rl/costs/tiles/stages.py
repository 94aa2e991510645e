"""Tiled programs as TVM tensor expressions: padding, heavy operator, epilogue.

Needs TVM, an optional extra: ``pip install 'go_rl[tvm]'``.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from go_rl.costs.tiles.program import SCALE
from go_rl.costs.tiles.tiled_program import TiledProgram
from go_rl.costs.timing.tvm_calls import import_tvm

PAD, HEAVY, LANES, EPILOGUE = "pad", "heavy", "lanes", "epilogue"
"""Names of the stages; all but `HEAVY` may be absent."""

GELU_LINEAR, GELU_CUBIC = 0.7978845608028654, 0.044715
"""Constants of GELU: sqrt(2 / pi), and the factor of the cube (Hendrycks and Gimpel, 2016)."""
TANH_CLAMP = 7.90531110763549805
TANH_ODD = (
    -2.76076847742355e-16,
    2.00018790482477e-13,
    -8.60467152213735e-11,
    5.12229709037114e-08,
    1.48572235717979e-05,
    6.37261928875436e-04,
    4.89352455891786e-03,
)
TANH_EVEN = (1.19825839466702e-06, 1.18534705686654e-04, 2.26843463243900e-03, 4.89352518554385e-03)
"""Eigen's rational approximation of tanh, which XLA uses on CPUs too; highest power first."""


def tensor_program(tiled: TiledProgram) -> tuple[list[Any], Any]:
    """Return the arguments, in the order of ``program.input_shapes``, and the result as tensors.

    The blocks are called `PAD`, `HEAVY`, `LANES` and `EPILOGUE`.
    """
    te = import_tvm().te
    shapes = tiled.program.input_shapes
    arguments = {name: te.placeholder(shape, "float32", name) for name, shape in shapes.items()}
    heavy = {"matmul": _matmul, "conv2d": _conv2d}.get(tiled.program.op, _reduce)
    result = heavy(te, tiled, arguments)
    if tiled.program.steps:
        result = _epilogue(te, tiled, result, arguments)
    return list(arguments.values()), result


def _matmul(te: Any, tiled: TiledProgram, arguments: Mapping[str, Any]) -> Any:
    left, right = arguments["left"], arguments["right"]
    k = te.reduce_axis((0, tiled.program.dims["k"]), "k")
    return te.compute(
        tiled.program.output_shape, lambda m, n: te.sum(left[m, k] * right[k, n], axis=k), HEAVY
    )


def _conv2d(te: Any, tiled: TiledProgram, arguments: Mapping[str, Any]) -> Any:
    dims, right, stride = tiled.program.dims, arguments["right"], tiled.program.dims["stride"]
    left = _padded(te, arguments["left"], dims) if dims["padding"] else arguments["left"]
    kh, kw, ci = (te.reduce_axis((0, dims[name]), name) for name in ("kh", "kw", "ci"))
    return te.compute(
        tiled.program.output_shape,
        lambda n, oh, ow, co: te.sum(
            left[n, oh * stride + kh, ow * stride + kw, ci] * right[kh, kw, ci, co],
            axis=[kh, kw, ci],
        ),
        HEAVY,
    )


def _padded(te: Any, image: Any, dims: Mapping[str, int]) -> Any:
    """A copy of the image within a frame of zeros."""
    tirx, pad, high, wide = import_tvm().tirx, dims["padding"], dims["h"], dims["w"]
    return te.compute(
        (dims["n"], high + 2 * pad, wide + 2 * pad, dims["ci"]),
        lambda n, y, x, c: tirx.if_then_else(
            tirx.all(y >= pad, y < high + pad, x >= pad, x < wide + pad),
            image[n, y - pad, x - pad, c],
            tirx.const(0.0, "float32"),
        ),
        PAD,
    )


def _reduce(te: Any, tiled: TiledProgram, arguments: Mapping[str, Any]) -> Any:
    """One sum for each element of the result or, along the minor dimension, for each lane."""
    program, image, lanes = tiled.program, arguments["left"], tiled.lanes
    combine = te.sum if program.op == "reduce_sum" else te.max
    outer, inner = program.dims["outer"], program.dims["inner"]
    if program.dims["axis"] == 0:
        row = te.reduce_axis((0, outer), "outer")
        return te.compute((inner,), lambda i: combine(image[row, i], axis=row), HEAVY)
    if not tiled.has_partial_sums:
        column = te.reduce_axis((0, inner), "inner")
        return te.compute((outer,), lambda o: combine(image[o, column], axis=column), HEAVY)
    block, lane = te.reduce_axis((0, inner // lanes), "block"), te.reduce_axis((0, lanes), "lane")
    partial = te.compute(
        (outer, lanes), lambda o, i: combine(image[o, block * lanes + i], axis=block), HEAVY
    )
    return te.compute((outer,), lambda o: combine(partial[o, lane], axis=lane), LANES)


def _epilogue(te: Any, tiled: TiledProgram, result: Any, arguments: Mapping[str, Any]) -> Any:
    return te.compute(
        tiled.program.output_shape, lambda *at: _after(tiled, result, arguments, at), EPILOGUE
    )


def _after(tiled: TiledProgram, result: Any, arguments: Mapping[str, Any], at: Any) -> Any:
    """One element of the result after the epilogue's steps."""
    tirx, value = import_tvm().tirx, result[at]
    for step in tiled.program.steps:
        if step in ("add", "bias"):
            value = value + arguments[step][at if step == "add" else at[-1]]
        else:
            value = _POINTWISE[step](tirx, value)
    return value


def _tanh(tirx: Any, x: Any) -> Any:
    """Eigen's rational function, on which LLVM can use vectors."""
    x = tirx.max(tirx.min(x, tirx.const(TANH_CLAMP, "float32")), tirx.const(-TANH_CLAMP, "float32"))
    square = x * x
    return x * _polynomial(tirx, TANH_ODD, square) / _polynomial(tirx, TANH_EVEN, square)


def _polynomial(tirx: Any, factors: tuple[float, ...], x: Any) -> Any:
    value = tirx.const(factors[0], "float32")
    for factor in factors[1:]:
        value = value * x + tirx.const(factor, "float32")
    return value


def _gelu(tirx: Any, x: Any) -> Any:
    return 0.5 * x * (1.0 + _tanh(tirx, GELU_LINEAR * (x + GELU_CUBIC * x * x * x)))


_POINTWISE: Mapping[str, Any] = {
    "gelu": _gelu,
    "relu": lambda tirx, x: tirx.max(x, tirx.const(0.0, "float32")),
    "scale": lambda tirx, x: x * tirx.const(SCALE, "float32"),
    "sigmoid": lambda tirx, x: 0.5 * _tanh(tirx, 0.5 * x) + 0.5,
    "tanh": _tanh,
}
