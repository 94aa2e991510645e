"""A network in TVM: imported, simplified, fused into functions of TIR."""

from __future__ import annotations

import warnings
from typing import Any

from go_rl.costs.programs.nests.tvm_lowering import import_meta_schedule
from go_rl.costs.timing.tvm_calls import import_tvm
from go_rl.tuning.config import TuningError
from go_rl.tuning.tvm.channels_last import channels_last
from go_rl.tuning.tvm.codegen import CodeTarget
from go_rl.tuning.tvm.constants import fold_constants
from go_rl.tuning.tvm.models.model import TunableNetwork


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
                lines = str(error).strip().splitlines() or [type(error).__name__]
                raise TuningError(f"TVM cannot compile the network: {lines[0]}") from error
    return module
