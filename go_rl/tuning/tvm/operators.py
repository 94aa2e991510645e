"""The functions of a lowered network: those that are tuned, and the rest."""

from __future__ import annotations

import hashlib
import re
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from math import prod
from typing import Any

import numpy as np

from go_rl.costs.programs.nests import NestError
from go_rl.costs.programs.nests.tvm_arithmetic import LOAD, kind_of, nodes_in
from go_rl.costs.timing.tvm_calls import import_tvm
from go_rl.tuning.loop.nouns import TunedOperator
from go_rl.tuning.tvm.constants import CONSTANT

LEAST_FLOPS = 1e4
"""FLOP below which a function is not tuned: a call takes as long."""
CALL = "relax.call_tir"
LIGHT = "no sum of products"
"""Reason why most functions are not tuned."""
SMALL = f"fewer than {LEAST_FLOPS:g} FLOP"
REDUCTION = 2
"""TVM's number of a block's reduction axis (``IterVar.CommReduce``)."""


@dataclass(frozen=True, eq=False)
class NetworkFunction:
    """A function of TIR that a network calls; equal functions are one."""

    names: tuple[str, ...]
    """Names of the function in the network."""
    module: Any
    """Module with the function alone, called ``main``, without a schedule."""
    calls: int
    """Calls in one run of the network."""
    flops: float
    """FLOP of one call."""
    untuned: str = ""
    """Reason why it is not tuned; "": it is, for it holds a sum of products of two operands, as
    convolutions and products do."""

    @property
    def text(self) -> str:
        """The function as JSON, from which another process builds it."""
        return str(import_tvm().ir.save_json(self.module))

    @property
    def operator(self) -> TunedOperator:
        """The function as an arm. Its workload is the same in every network and process."""
        from tvm_ffi import structural_hash  # pyright: ignore[reportMissingImports]

        tvm = import_tvm()
        told = f"tvm {tvm.__version__} {structural_hash(self.module)} {self.title}"
        digest = hashlib.sha256(told.encode()).hexdigest()[:32]
        return TunedOperator(self.title, digest, self.calls, self.flops)

    @property
    def title(self) -> str:
        """The operators that it fuses, without TVM's numbers, and the shapes of its first two
        operands and its result."""
        parts = self.names[0].removeprefix("fused_").split("_")
        words = "_".join(re.sub(r"\d+$", "", part) or part for part in parts)
        shapes = [tuple(int(size) for size in each.shape) for each in self.module["main"].params]
        told = dict.fromkeys((*range(min(2, len(shapes))), len(shapes) - 1))
        return f"{words} {' '.join('x'.join(map(str, shapes[i])) or '1' for i in told)}"


def network_functions(module: Any) -> tuple[NetworkFunction, ...]:
    """Return the distinct functions that ``main`` calls, the tuned ones by FLOP first."""
    from tvm_ffi import structural_equal, structural_hash  # pyright: ignore[reportMissingImports]

    calls = _calls(module)
    groups: dict[int, list[list[tuple[str, Any]]]] = {}
    for variable, function in module.functions.items():
        name = str(variable.name_hint)
        if kind_of(function) != "PrimFunc" or name not in calls:
            continue
        same = groups.setdefault(structural_hash(function), [])
        group = next((g for g in same if structural_equal(g[0][1], function)), None)
        if group is None:
            same.append(group := [])
        group.append((name, function))
    found = [_function(group, calls) for same in groups.values() for group in same]
    return in_order(found)


def is_tuned(function: NetworkFunction) -> bool:
    """Return whether a function is tuned."""
    return not function.untuned


def has_fixed_shapes(function: Any) -> bool:
    """Return whether all operands of a function of TIR are arrays whose sizes are numbers."""
    if any(kind_of(operand.ty) != "BufferType" for operand in function.params):
        return False  # a size itself
    sizes = (size for operand in function.params for size in operand.shape)
    return all(kind_of(size) == "IntImm" for size in sizes)


def in_order(functions: Iterable[NetworkFunction]) -> tuple[NetworkFunction, ...]:
    """Return the tuned functions by FLOP, and behind them the others."""
    return tuple(sorted(functions, key=lambda f: (not is_tuned(f), -f.flops * f.calls, f.names)))


def weight_bytes(module: Any) -> int:
    """Return the bytes of the constants that ``main`` reads."""
    relax, found = import_tvm().relax, dict[Any, int]()

    def visit(node: Any) -> None:
        if kind_of(node) == CONSTANT:
            array = node.value
            size = prod(int(each) for each in array.shape)
            found[node] = size * np.dtype(str(array.dtype)).itemsize

    relax.analysis.post_order_visit(module["main"], visit)
    return sum(found.values())


def _calls(module: Any) -> Counter[str]:
    relax, found = import_tvm().relax, Counter[str]()

    def visit(node: Any) -> None:
        if isinstance(node, relax.Call) and getattr(node.op, "name", "") == CALL:
            found[str(node.args[0].name_hint)] += 1

    relax.analysis.post_order_visit(module["main"], visit)
    return found


def _function(group: list[tuple[str, Any]], calls: Counter[str]) -> NetworkFunction:
    tvm = import_tvm()
    names = tuple(sorted(name for name, _ in group))
    function = group[0][1].with_attr("global_symbol", "main")
    alone = tvm.IRModule({"main": function})
    flops = _flops(alone)
    return NetworkFunction(
        names=names,
        module=alone,
        calls=sum(calls[name] for name in names),
        flops=flops,
        untuned=_why_untuned(function, flops),
    )


def _why_untuned(function: Any, flops: float) -> str:
    if not _is_heavy(function.body):
        return LIGHT
    if not flops:
        return "its sizes are not constant"
    return "" if flops >= LEAST_FLOPS else SMALL


def _flops(module: Any) -> float:
    """FLOP of a call; 0 where sizes are not constant, for then it is not tuned."""
    try:
        return float(import_tvm().s_tir.analysis.estimate_tir_flops(module))
    except Exception:
        return 0.0


def _is_heavy(statement: Any) -> bool:
    """Whether a block in a statement adds up products of elements of two operands."""
    match kind_of(statement):
        case "SBlockRealize":
            return _is_heavy(statement.block)
        case "SBlock":
            sums = any(int(axis.iter_type) == REDUCTION for axis in statement.iter_vars)
            body = statement.body
            return (sums and _multiplies(body)) or _is_heavy(body)
        case "SeqStmt":
            return any(_is_heavy(each) for each in statement.seq)
        case "For" | "AttrStmt":
            return _is_heavy(statement.body)
    return False


def _multiplies(body: Any) -> bool:
    """Whether a statement stores a product of elements of two operands."""
    if kind_of(body) != "BufferStore":
        return False
    try:
        products = [node for node in nodes_in(body.value) if kind_of(node) == "Mul"]
        return any(_loaded(x.a) and _loaded(x.b) and _loaded(x.a) != _loaded(x.b) for x in products)
    except NestError:
        return False


def _loaded(expression: Any) -> set[str]:
    return {str(node.source.name) for node in nodes_in(expression) if kind_of(node) == LOAD}
