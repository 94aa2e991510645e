"""`LoweredNetwork`: a network as functions of TIR, each tuned or left untuned with a reason."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from go_rl.core.printable import first_line
from go_rl.costs.programs.nests.tvm_arithmetic import kind_of
from go_rl.costs.programs.nests.tvm_lowering import import_meta_schedule
from go_rl.costs.timing.tvm_calls import import_tvm
from go_rl.tuning.config import TuningError
from go_rl.tuning.tvm.channels_last import channels_last
from go_rl.tuning.tvm.codegen import CodeTarget
from go_rl.tuning.tvm.constants import fold_constants
from go_rl.tuning.tvm.models.model import ModelInput, TunableNetwork
from go_rl.tuning.tvm.operators import (
    NetworkFunction,
    has_fixed_shapes,
    in_order,
    is_tuned,
    network_functions,
    weight_bytes,
)
from go_rl.tuning.tvm.space import TvmSpace


@dataclass(frozen=True, eq=False)
class LoweredNetwork:
    """Network as functions of TIR."""

    name: str
    inputs: tuple[ModelInput, ...]
    code: CodeTarget
    """Target of code generation."""
    module: Any
    """Module of Relax, whose ``main`` calls the functions."""
    functions: tuple[NetworkFunction, ...] = field(repr=False)
    """All functions of the network; the tuned ones come first."""
    weight_bytes: int = 0
    """Bytes of all constants."""
    spaces: Mapping[int, TvmSpace] = field(default_factory=dict, repr=False)
    """Candidates of the tuned functions, by number."""

    @property
    def tuned(self) -> tuple[NetworkFunction, ...]:
        """Functions that are tuned: the arms, in order."""
        return tuple(function for function in self.functions if is_tuned(function))


def lower(network: TunableNetwork, code: CodeTarget) -> LoweredNetwork:
    """Return a network as functions of TIR.

    Args:
        network: with its weights.
        code: what it is compiled for.

    Raises:
        MissingDependencyError: TVM is not installed.
        TuningError: TVM cannot import or compile the network, or a shape in it is not fixed.
    """
    module = lowered_network(imported(network), code)
    _check_fixed(network, module)
    found = [_with_space(each, code) for each in network_functions(module)]
    spaces = {each.names: space for each, space in found if space is not None}
    functions = in_order(each for each, _ in found)
    return LoweredNetwork(
        network.name, network.inputs, code, module, functions, weight_bytes(module),
        {i: spaces[each.names] for i, each in enumerate(functions) if each.names in spaces},
    )  # fmt: skip


def _check_fixed(network: TunableNetwork, module: Any) -> None:
    """Raise a `TuningError` that says where the network's shapes begin not to be fixed, if a
    function of TIR has an operand of no fixed shape."""
    for variable, function in module.functions.items():
        if kind_of(function) == "PrimFunc" and not has_fixed_shapes(function):
            where = network.unfixed_shape() or (
                f"an operand of {str(variable.name_hint)!r} has a shape that is not known"
            )
            raise TuningError(
                f"{network.name}: {where}; programs are compiled for fixed sizes above 0: change "
                "that shape, or cut the model before it"
            )


def _with_space(
    function: NetworkFunction, code: CodeTarget
) -> tuple[NetworkFunction, TvmSpace | None]:
    """A function and, where it is tuned, its candidates; one that has none is not tuned."""
    if not is_tuned(function):
        return function, None
    try:
        return function, TvmSpace(function.module, code)
    except Exception as error:  # TVM raises what it likes
        untuned = f"TVM finds no schedules for it: {first_line(error)}"
        return replace(function, untuned=untuned), None


def imported(network: TunableNetwork) -> Any:
    """Return the network as a module of Relax; its weights are constants of ``main``.

    Raises:
        MissingDependencyError: TVM is not installed.
        TuningError: an operator cannot be translated; network and operator are named.
    """
    import_meta_schedule()
    try:
        return network.relax()
    except TuningError as error:
        raise TuningError(f"{network.name}: {error}") from error


def lowered_network(module: Any, code: CodeTarget) -> Any:
    """Return an imported network as calls of fused functions of TIR, convolutions with channels
    last and normalisations folded into their weights; exponentials, hyperbolic tangents and error
    functions are polynomials, of which vectors are made, for those of the C library take one number
    at a time. Functions say which operands are weights: a candidate may have these in a layout of
    its own.

    Raises:
        TuningError: a pass of TVM fails, or an operator has no implementation in TIR.
    """
    tvm = import_tvm()
    passes = tvm.relax.transform
    steps = (
        passes.FoldBatchnormToConv2D(), passes.DecomposeOpsForInference(),
        passes.CanonicalizeBindings(), fold_constants, passes.FoldConstant(),
        channels_last, passes.CanonicalizeBindings(), fold_constants,
        passes.FoldConstant(), passes.EliminateCommonSubexpr(), passes.FastMathTransform(),
        passes.LegalizeOps(), passes.AnnotateTIROpPattern(), passes.FoldConstant(),
        passes.FuseOps(), passes.FuseTIR(), passes.CanonicalizeBindings(),
        passes.AttachAttrLayoutFreeBuffers(), passes.DeadCodeElimination(),
    )  # fmt: skip
    with code.tvm(), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for step in steps:
            try:
                module = step(module)
            except Exception as error:
                said = first_line(error)
                raise TuningError(f"TVM cannot compile the network: {said}") from error
    return module
