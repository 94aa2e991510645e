"""`relax_of`: a program of StableHLO as a module of Relax.

TVM's own front end has 24 operators, no functions but ``main``, and neither general products nor
other layouts than its own; what JAX makes of a network needs these.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any

import numpy as np

from go_rl.costs.programs.nests.tvm_lowering import import_meta_schedule
from go_rl.costs.timing.tvm_calls import import_tvm
from go_rl.tuning.config import TuningError
from go_rl.tuning.tvm.stablehlo import contractions, elementwise, indexing, reductions, shapes
from go_rl.tuning.tvm.stablehlo.values import Emitter, HloCall, HloValue, Shape, Translate

RULES: Mapping[str, Translate] = MappingProxyType({
    **elementwise.RULES, **shapes.RULES, **contractions.RULES, **reductions.RULES,
    **indexing.RULES,
})  # fmt: skip
"""Translations of all operators, by name."""
DTYPES: Mapping[str, str] = MappingProxyType({
    "f32": "float32", "i32": "int32", "i1": "bool", "ui32": "uint32", "i64": "int64",
    "i8": "int8", "ui8": "uint8",
})  # fmt: skip
"""NumPy's name of a type by MLIR's."""
MEANS = "replace what computes it, or export the network to ONNX"
CALL, RETURN = "func.call", ("func.return", "stablehlo.return")


def type_of(value: Any) -> tuple[Shape, str]:
    """Return the shape and type of a value of MLIR.

    Raises:
        TuningError: it is no array of fixed size, or of a type that is not tuned.
    """
    from jaxlib.mlir import ir

    if not isinstance(value.type, ir.RankedTensorType):
        raise TuningError(f"{value.type} is no array of fixed shape")
    tensor = ir.RankedTensorType(value.type)
    element = str(tensor.element_type)
    if not tensor.has_static_shape or element not in DTYPES:
        raise TuningError(
            f"an array is of type {value.type}; only float32 networks of fixed shapes are tuned"
        )
    return tuple(int(size) for size in tensor.shape), DTYPES[element]


def main_of(module: Any) -> Any:
    """Return the function that a program begins with.

    Raises:
        TuningError: there is none.
    """
    functions = {_name(each): each for each in module.body.operations if _is_function(each)}
    if "main" not in functions:
        raise TuningError(
            f"the program has no function 'main', but {', '.join(functions) or 'none'}"
        )
    return functions["main"]


def check_operators(module: Any) -> None:
    """Raise a `TuningError` that names the operators of a program without a rule."""
    missing: dict[str, None] = {}
    for function in filter(_is_function, module.body.operations):
        for view in function.regions[0].blocks[0].operations:
            name = view.operation.name
            if name not in RULES and name != CALL and name not in RETURN:
                missing[_full_name(view.operation)] = None
    if missing:
        raise TuningError(f"not translated for TVM: {', '.join(missing)}; {MEANS}")


def relax_of(module: Any, constants: Mapping[int, np.ndarray]) -> Any:
    """Return a program as a module of Relax with the function ``main``.

    Args:
        module: of MLIR, in StableHLO.
        constants: arguments of ``main`` that are known, by position; the others stay arguments.

    Raises:
        TuningError: an operator is not translated; it is named.
    """
    check_operators(module)
    import_meta_schedule()
    relax = import_tvm().relax
    builder = relax.BlockBuilder()
    arguments = list(main_of(module).regions[0].blocks[0].arguments)
    given: list[HloValue] = []
    for i, argument in enumerate(arguments):
        shape, dtype = type_of(argument)
        made = constants.get(i)
        if made is None:
            made = relax.Var(f"input{i}", relax.TensorType(shape, dtype))
        given.append(HloValue(made, shape, dtype))
    free = [each.made for each in given if not each.known]
    with builder.function("main", free):
        with builder.dataflow():
            emitter = Emitter(builder)
            results = _Translation(module, emitter).function(main_of(module), given)
            parts = [emitter.whole(each) for each in results]
            whole = builder.emit_output(parts[0] if len(parts) == 1 else relax.Tuple(parts))
        builder.emit_func_output(whole)
    return builder.get()


class _Translation:
    """Translates functions, each call of them anew."""

    def __init__(self, module: Any, emitter: Emitter) -> None:
        self._emitter = emitter
        self._functions = {_name(f): f for f in module.body.operations if _is_function(f)}

    def function(self, function: Any, given: Sequence[HloValue]) -> list[HloValue]:
        """Return the results of a function of given arguments."""
        block = function.regions[0].blocks[0]
        known = dict(zip(block.arguments, given, strict=True))
        for view in block.operations:
            operation = view.operation
            operands = tuple(known[operand] for operand in operation.operands)
            if operation.name in RETURN:
                return list(operands)
            known.update(zip(operation.results, self._results(operation, operands), strict=True))
        raise TuningError("a function of the program has no end")

    def _results(self, operation: Any, operands: tuple[HloValue, ...]) -> Sequence[HloValue]:
        if operation.name == CALL:
            callee = str(operation.attributes["callee"]).lstrip("@")
            return self.function(self._functions[callee], operands)
        call = HloCall(
            name=operation.name,
            operands=operands,
            attributes={each: operation.attributes[each] for each in _attributes(operation)},
            results=tuple(map(type_of, operation.results)),
            regions=tuple(operation.regions),
        )
        return RULES[call.name](call, self._emitter)


def _full_name(operation: Any) -> str:
    """The name of an operator, with what a custom call calls."""
    calls = "call_target_name" in _attributes(operation)
    called = f" {operation.attributes['call_target_name']}" if calls else ""
    return f"the operator {operation.name}{called}"


def _attributes(operation: Any) -> list[str]:
    return [each if isinstance(each, str) else each.name for each in operation.attributes]


def _name(function: Any) -> str:
    return str(function.attributes["sym_name"]).strip('"')


def _is_function(view: Any) -> bool:
    return view.operation.name == "func.func"
