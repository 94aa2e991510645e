"""Work of the library calls that XLA's compilers and JAX leave in HLO, by target name.

A name that is not in the tables is unknown, and treated as an unknown opcode is. Sources of the
names: ``xla/service/gpu/cublas_cudnn.cc``, ``xla/service/cpu/onednn_util.h``,
``jaxlib/cpu/lapack.cc`` and ``jaxlib/gpu/solver.cc``; of the counts: `readers.decompositions`.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Sequence
from dataclasses import replace

from go_rl.core import OpKind, ReadError
from go_rl.graphs.readers import decompositions as dense
from go_rl.graphs.readers.hlo.shape import Shape
from go_rl.graphs.readers.hlo.text import Instruction
from go_rl.graphs.readers.hlo.window import convolution_flops
from go_rl.graphs.tables import by_name

Rule = Callable[[Instruction, Sequence[Shape]], float]

_LIBRARY = re.compile(
    r"(?:lapack_[sdcz]|cusolver_|cublas_|cusparse_|hipsolver_|hipblas_|hipsparse_|rocsolver_)"
    r"([a-z]+\d?)(?:_batched)?(?:_ffi)?"
)
"""Routines by their LAPACK names."""
_SCORES = re.compile(r'"intermediate_tensor_shape"\s*:\s*\{.*?"dimensions"\s*:\s*\[([^\]]*)')


def target_of(instruction: Instruction) -> str:
    """Return the name of what a custom call calls."""
    return instruction.attributes.get("custom_call_target", "").strip('"')


def custom_call_flops(instruction: Instruction, operands: Sequence[Shape]) -> float | None:
    """Return the FLOP of a custom call; None where its target is not known.

    Raises:
        ReadError: the target is known and its operands are not those that it takes.
    """
    found = _found(target_of(instruction))
    if found is None:
        return None
    try:
        return float(found[1](instruction, operands))
    except (IndexError, ValueError) as error:
        raise ReadError(
            f"custom call {instruction.name!r}: {target_of(instruction)!r} does not take operands "
            f"of shapes {[list(shape.dims) for shape in operands]}"
        ) from error


def custom_call_kind(instruction: Instruction) -> OpKind:
    """Return the kind of a custom call; `OpKind.OTHER` where its target is not known."""
    found = _found(target_of(instruction))
    return OpKind.OTHER if found is None else found[0]


def _found(target: str) -> tuple[OpKind, Rule] | None:
    routine = _LIBRARY.fullmatch(target)
    if routine is not None and routine[1] in _ROUTINES:
        return OpKind.MATMUL, _ROUTINES[routine[1]]
    return _TARGETS.get(target)


def _result(instruction: Instruction) -> Shape:
    return (instruction.shape.leaves() or [instruction.shape])[0]


def _of(formula: dense.OfShapes) -> Rule:
    """A routine that the shapes of its operands decide."""
    return lambda call, operands: formula([shape.dims for shape in operands])


def _mode(call: Instruction, name: str) -> str:
    """A LAPACK letter such as ``mode = 65 : ui8``; empty where it is not given."""
    config = call.attributes.get("backend_config", "")
    found = re.search(rf'\b{name}"?\s*[=:]\s*(\d+|true|false)', config)
    if found is None:
        return ""
    return chr(int(found[1])) if found[1].isdigit() else found[1]


def _apply_reflectors(call: Instruction, operands: Sequence[Shape]) -> float:
    left = _mode(call, "left") != "false" and _mode(call, "side") != "R"
    return dense.reflected([shape.dims for shape in operands], left)


def _svd(call: Instruction, operands: Sequence[Shape]) -> float:
    mode = _mode(call, "mode")
    vectors = mode != "N" and _mode(call, "compute_uv") != "false"
    full = mode == "A" or _mode(call, "full_matrices") == "true"
    return _of(dense.of_matrices(lambda m, n: dense.svd(m, n, vectors, full)))(call, operands)


def _symmetric_eigen(call: Instruction, operands: Sequence[Shape]) -> float:
    vectors = _mode(call, "mode") != "N"
    return _of(dense.of_square(lambda n: dense.symmetric_eigen(n, vectors)))(call, operands)


def _eigen(call: Instruction, operands: Sequence[Shape]) -> float:
    names = ("mode", "compute_left", "compute_right", "left", "right")
    modes = {_mode(call, name) for name in names} - {""}
    vectors = not modes or bool(modes & {"V", "true"})
    return _of(dense.of_square(lambda n: dense.eigen(n, vectors)))(call, operands)


_ROUTINES: dict[str, Rule] = by_name(
    {
        "potrf": _of(dense.of_square(dense.cholesky)),
        "trsm": _of(dense.triangular_systems),
        "getrf": _of(dense.of_matrices(dense.lu)),
        # Pivoting by column norms adds terms of lower order.
        "geqrf geqp3": _of(dense.of_matrices(dense.qr_factors)),
        "orgqr ungqr": _of(dense.householder_products),
        "ormqr unmqr": _apply_reflectors,
        "gesdd gesvd gesvdj gesvdp": _svd,
        "syevd heevd syevj heevj": _symmetric_eigen,
        "geev gees": _eigen,
        "gehrd": _of(dense.of_square(dense.hessenberg)),
        "sytrd hetrd": _of(dense.of_square(dense.tridiagonal)),
        "gtsv gtsv2": _of(dense.tridiagonal_systems),
    }
)


def _matmul(call: Instruction, operands: Sequence[Shape]) -> float:
    """``2 M N K``; K from ``dot_dimension_numbers`` of the configuration, else from the sizes."""
    left, right, out = operands[0], operands[1], _result(call)
    config = call.attributes.get("backend_config", "")
    found = re.search(r'\\?"lhs_contracting_dimensions\\?"\s*:\s*\[([^\]]*)\]', config)
    if found is not None:
        depth = math.prod(left.dims[int(d)] for d in re.findall(r"\d+", found[1]))
        return 2.0 * out.elements * depth
    shared = math.prod(out.dims[:-2]) if len(right.dims) > 2 else 1
    squared = left.elements * right.elements / max(1, out.elements * shared)
    return 2.0 * out.elements * round(math.sqrt(squared))


def _convolution(lhs: int | None, rhs: int | None, out: int | None) -> Rule:
    """A convolution in terms of the forward one: each array an operand's number, or the result."""

    def flops(call: Instruction, operands: Sequence[Shape]) -> float:
        arrays = [_result(call) if n is None else operands[n] for n in (lhs, rhs, out)]
        return convolution_flops(replace(call, shape=arrays[2]), arrays[0], arrays[1])

    return flops


def _with_bias(flops: Rule) -> Rule:
    """Each further operand of ``flops`` is added to the result, and the activation is one more."""

    def total(call: Instruction, operands: Sequence[Shape]) -> float:
        extra = max(0, len(operands) - 2) + 1
        return flops(call, operands) + extra * _result(call).elements

    return total


def _attention(products: int) -> Rule:
    """Products of queries, keys and values with the scores between them, and the softmax.

    Queries are the first operand; a head's depth is its last dimension but where the configuration
    names another, and the scores are ``intermediate_tensor_shape``.
    """

    def flops(call: Instruction, operands: Sequence[Shape]) -> float:
        config = call.attributes.get("backend_config", "").replace("\\", "")
        shape = _SCORES.search(config)
        if shape is None:
            raise ReadError(f"custom call {call.name!r} lacks the shape of its scores")
        scores = math.prod(int(n) for n in re.findall(r"\d+", shape[1]))
        depth = re.search(r'"lhs_contracting_dimensions"\s*:\s*\["?(\d+)', config)
        place = int(depth[1]) if depth and products == 2 else -1
        return scores * (2.0 * products * operands[0].dims[place] + 4.0)

    return flops


def _per_element(count: int) -> Rule:
    """``count`` FLOP an element of the first operand."""
    return lambda call, operands: float(count) * operands[0].elements


def _top_k(call: Instruction, operands: Sequence[Shape]) -> float:
    return dense.top_k(operands[0].elements, _result(call).dims[-1])


_FORWARD = _convolution(0, 1, None)
_CALLS: dict[OpKind, dict[str, Rule]] = {
    OpKind.MATMUL: {
        "__cublas$gemm __cublas$lt$matmul __cublas$lt$matmul$f8 __onednn$matmul": _matmul,
        "__cudnn$fmhaSoftmax __cudnn$fmhaSoftmaxF8 __cudnn$fmhaScaleBiasSoftmax": _attention(2),
        "__cudnn$fmhaSoftmaxBackward __cudnn$fmhaSoftmaxBackwardF8": _attention(5),
        "__cudnn$fmhaScaleBiasSoftmaxBackward": _attention(5),
        "__cusolver$cholesky": _of(dense.of_square(dense.cholesky)),
        "__cublas$triangularSolve": _of(dense.triangular_systems),
        "Eigh": _of(dense.of_square(dense.symmetric_eigen)),
        "LuDecomposition": _of(dense.of_matrices(dense.lu)),
        "Qr": _of(dense.of_matrices(dense.qr_factors)),
        "ProductOfElementaryHouseholderReflectors": _of(dense.householder_products),
    },
    OpKind.CONVOLUTION: {
        "__cudnn$convForward __cudnn$convForwardGraph __onednn$convolution": _FORWARD,
        "__cudnn$convBackwardInput": _convolution(None, 1, 0),
        "__cudnn$convBackwardFilter": _convolution(0, None, 1),
        "__cudnn$convBiasActivationForward": _with_bias(_FORWARD),
    },
    OpKind.REDUCTION: {
        "TopK __gpu$TopK ApproxTopK PartialReduce": _top_k,
        "__cub$DeviceRadixSort": lambda c, o: dense.sort(o[0].elements),
        "__onednn$softmax": _per_element(4),
        "__onednn$layernorm __cudnn$norm": _per_element(7),
    },
    OpKind.ELEMENTWISE: {
        # 20 rounds of add, rotate (3) and xor, and 5 additions of keys, for each pair of words.
        "cu_threefry2x32_ffi cu_threefry2x32 hip_threefry2x32_ffi": lambda c, o: (
            117 * _result(c).elements
        )
    },
    OpKind.CONSTANT: {"AllocateBuffer": lambda c, o: 0.0},
}
_TARGETS: dict[str, tuple[OpKind, Rule]] = {
    target: (kind, rule) for kind, rows in _CALLS.items() for target, rule in by_name(rows).items()
}
