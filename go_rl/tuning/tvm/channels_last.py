"""Images with channels last: convolutions in NHWC, and what lies between them.

A convolution of TVM's front end reads [N, C, H, W]. Here it reads [N, H, W, C], between two
transpositions; those behind it sink through operators that a table names (``T(f(x)) = f(T(x))``),
until they meet the transposition before the next convolution, and both vanish. An operator that the
table does not name reads the transposed image: a region that cannot be converted stays as it is.
TVM's ``ConvertLayout`` ends the whole compilation there.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Any

import numpy as np

from go_rl.costs.programs.nests.tvm_arithmetic import CONSTANTS, kind_of
from go_rl.costs.timing.tvm_calls import import_tvm
from go_rl.graphs.tables import names
from go_rl.tuning.tvm.constants import CONSTANT, shape_of

LAST, FIRST = (0, 2, 3, 1), (0, 3, 1, 2)
"""Axes that make channels the last ones, and the first ones again."""
RANK = 4
"""Dimensions of an image with its batch."""
_UNARY = names(
    "abs acos acosh asin asinh astype atan atanh bitwise_not ceil clip cos cosh erf exp floor"
    " isfinite isinf isnan log log10 log2 logical_not negative nn.gelu nn.gelu_tanh nn.leakyrelu"
    " nn.relu nn.relu6 nn.selu nn.silu nn.softplus round rsqrt sigmoid sign sin sinh sqrt square"
    " tan tanh trunc"
)
_BINARY = names(
    "add bitwise_and bitwise_or bitwise_xor divide equal floor_divide floor_mod greater"
    " greater_equal less less_equal logical_and logical_or logical_xor maximum minimum mod multiply"
    " not_equal power subtract"
)
ELEMENTWISE = frozenset(f"relax.{name}" for name in (*_UNARY, *_BINARY, "where"))
"""Operators that compute each element from those at its place."""
POOLS = frozenset({
    "relax.nn.max_pool2d", "relax.nn.avg_pool2d", "relax.nn.adaptive_avg_pool2d",
})  # fmt: skip
REDUCTIONS = frozenset(f"relax.{name}" for name in names("max mean min prod sum"))
ALONG_AN_AXIS = frozenset({"relax.nn.softmax", "relax.nn.log_softmax"})


def channels_last(module: Any) -> Any:
    """Return a module of Relax whose convolutions of images read channels last.

    Args:
        module: with a function ``main``; weights are constants, which stay to be folded.
    """
    from tvm.relax.expr_functor import PyExprMutator, mutator  # pyright: ignore[reportMissingImports]

    relax = import_tvm().relax

    @mutator
    class Sinker(PyExprMutator):
        """Replaces calls by those on transposed operands."""

        def visit_call_(self, call: Any) -> Any:
            call = self.visit_expr_post_order(call)
            rule = RULES.get(getattr(call.op, "name", ""))
            made = None if rule is None else rule(_Site(self, call))
            return call if made is None else made

    sinker = Sinker(module)
    for variable, function in list(module.functions.items()):
        if isinstance(function, relax.Function):
            made: Any = sinker.visit_expr(function)
            sinker.builder_.update_func(variable, made)
    return sinker.builder_.get()


class _Site:
    """A call, and where what replaces it is written.

    Args:
        sinker: the mutator.
        call: to be replaced.
    """

    def __init__(self, sinker: Any, call: Any) -> None:
        self._sinker, self.call = sinker, call
        self.op = import_tvm().relax.op

    @property
    def name(self) -> str:
        """Name of the operator."""
        return str(self.call.op.name)

    def emit(self, expression: Any) -> Any:
        """Write a binding; returns its variable."""
        return self._sinker.builder_.emit(expression)

    def sunk(self, expression: Any) -> Any | None:
        """Return the image with channels last whose transposition an operand is; None: it is
        none."""
        bound = self._bound(expression)
        if getattr(getattr(bound, "op", None), "name", "") != "relax.permute_dims":
            return None
        return bound.args[0] if _axes(bound, RANK) == FIRST else None

    def last(self, expression: Any) -> Any:
        """Return an operand, of four dimensions or, where it is constant, fewer, with channels
        last."""
        known = self.sunk(expression)
        if known is not None:
            return known
        bound = self._bound(expression)
        if kind_of(bound) == CONSTANT:
            array = bound.value.numpy()
            array = array.reshape((1,) * (RANK - array.ndim) + array.shape)
            return import_tvm().relax.const(np.ascontiguousarray(array.transpose(LAST)))
        return self.emit(self.op.permute_dims(expression, list(LAST)))

    def first(self, expression: Any) -> Any:
        """Return what was computed with channels last as the rest of the network reads it."""
        return self.op.permute_dims(self.emit(expression), list(FIRST))

    def is_constant(self, expression: Any) -> bool:
        """Whether an operand is an array that is known."""
        return kind_of(self._bound(expression)) == CONSTANT

    def is_number(self, expression: Any) -> bool:
        """Whether an operand has no dimensions, and so no layout."""
        return kind_of(expression) in CONSTANTS or shape_of(expression) == ()

    def _bound(self, expression: Any) -> Any:
        if isinstance(expression, import_tvm().relax.Var):
            return self._sinker.lookup_binding(expression)
        return expression


Rule = Callable[[_Site], Any | None]
"""Rule that returns the replacement of a call; None: it stays."""


def _rank(expression: Any) -> int | None:
    shape = shape_of(expression)
    return None if shape is None else len(shape)


def _axes(call: Any, rank: int) -> tuple[int, ...]:
    axes = call.attrs.axes
    if axes is None:
        return tuple(reversed(range(rank)))
    return tuple(int(axis) % rank for axis in axes)


def _to_last(axis: int) -> int:
    """Place of an axis once channels are last."""
    return LAST.index(axis % RANK)


def _convolution(site: _Site) -> Any | None:
    call, attributes = site.call, site.call.attrs
    plain = attributes.data_layout, attributes.kernel_layout, attributes.out_layout or "NCHW"
    if plain != ("NCHW", "OIHW", "NCHW"):
        return None
    image, kernel = call.args
    made = site.op.nn.conv2d(
        site.last(image), site.emit(site.op.permute_dims(kernel, [2, 3, 1, 0])),
        strides=_numbers(attributes.strides), padding=_numbers(attributes.padding),
        dilation=_numbers(attributes.dilation), groups=int(attributes.groups),
        data_layout="NHWC", kernel_layout="HWIO", out_dtype=attributes.out_dtype or None,
    )  # fmt: skip
    return site.first(made)


def _elementwise(site: _Site) -> Any | None:
    call = site.call
    if _rank(call) != RANK or not any(site.sunk(each) is not None for each in call.args):
        return None
    operands = []
    for each in call.args:
        rank = _rank(each)
        if site.is_number(each):
            operands.append(each)
        elif rank == RANK or (rank is not None and rank < RANK and site.is_constant(each)):
            operands.append(site.last(each))
        else:
            return None
    return site.first(import_tvm().relax.Call(call.op, operands, call.attrs))


def _pool(site: _Site) -> Any | None:
    (image,), attributes = site.call.args, site.call.attrs
    inside = site.sunk(image)
    if inside is None or (attributes.layout, attributes.out_layout or "NCHW") != ("NCHW", "NCHW"):
        return None
    if site.name == "relax.nn.adaptive_avg_pool2d":
        size = attributes.output_size
        sizes = None if size is None else _numbers(size)
        return site.first(site.op.nn.adaptive_avg_pool2d(inside, sizes, layout="NHWC"))
    pool = getattr(site.op.nn, site.name.rpartition(".")[2])
    made = pool(
        inside, pool_size=_numbers(attributes.pool_size), strides=_numbers(attributes.strides),
        padding=_numbers(attributes.padding), dilation=_numbers(attributes.dilation),
        ceil_mode=bool(attributes.ceil_mode), layout="NHWC",
        count_include_pad=bool(attributes.count_include_pad),
    )  # fmt: skip
    return site.first(made)


def _concatenation(site: _Site) -> Any | None:
    (fields,), axis = site.call.args, site.call.attrs.axis
    bound = site._bound(fields)
    if _rank(site.call) != RANK or axis is None or kind_of(bound) != "Tuple":
        return None
    parts = list(bound.fields)
    if not any(site.sunk(each) is not None for each in parts):
        return None
    return site.first(site.op.concat([site.last(each) for each in parts], _to_last(int(axis))))


def _reduction(site: _Site) -> Any | None:
    (image,), attributes = site.call.args, site.call.attrs
    inside = site.sunk(image)
    if inside is None or attributes.axis is None:
        return None
    axes, keep = [int(axis) % RANK for axis in attributes.axis], bool(attributes.keepdims)
    reduce = getattr(site.op, site.name.rpartition(".")[2])
    made = reduce(inside, [_to_last(axis) for axis in axes], keep)
    if keep:
        return site.first(made)
    left = [axis for axis in LAST if axis not in axes]
    return made if left == sorted(left) else None


def _along_an_axis(site: _Site) -> Any | None:
    inside = site.sunk(site.call.args[0])
    if inside is None:
        return None
    over = getattr(site.op.nn, site.name.rpartition(".")[2])
    return site.first(over(inside, _to_last(int(site.call.attrs.axis))))


def _padding(site: _Site) -> Any | None:
    call, attributes = site.call, site.call.attrs
    inside, width = site.sunk(call.args[0]), _numbers(site.call.attrs.pad_width)
    if inside is None or len(width) != 2 * RANK:
        return None
    moved = [width[2 * axis + end] for axis in LAST for end in (0, 1)]
    fill = float(attributes.pad_value)
    return site.first(site.op.nn.pad(inside, moved, fill, str(attributes.pad_mode)))


def _transposition(site: _Site) -> Any | None:
    """Two transpositions are one, or none."""
    inside = site.sunk(site.call.args[0])
    if inside is None:
        return None
    together = [FIRST[axis] for axis in _axes(site.call, RANK)]
    if together == list(range(RANK)):
        return inside
    return site.op.permute_dims(inside, together)


def _numbers(given: Sequence[Any]) -> list[int]:
    return [int(each) for each in given]


RULES: Mapping[str, Rule] = MappingProxyType({
    "relax.nn.conv2d": _convolution, "relax.concat": _concatenation, "relax.nn.pad": _padding,
    "relax.permute_dims": _transposition,
    **dict.fromkeys(ELEMENTWISE, _elementwise), **dict.fromkeys(POOLS, _pool),
    **dict.fromkeys(REDUCTIONS, _reduction), **dict.fromkeys(ALONG_AN_AXIS, _along_an_axis),
})  # fmt: skip
"""Rules by name of the operator."""
