"""FLOP and bytes of HLO, counted as XLA's `HloCostAnalysis` counts them."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from graphlib import CycleError, TopologicalSorter

from go_rl.core import ReadError, UnknownOperatorError
from go_rl.core.errors import nearest
from go_rl.graphs.readers import decompositions as dense
from go_rl.graphs.readers.cost import Cost
from go_rl.graphs.readers.hlo.custom_calls import custom_call_flops, target_of
from go_rl.graphs.readers.hlo.loops import trip_count
from go_rl.graphs.readers.hlo.opcodes import (
    ARITHMETIC,
    KNOWN,
    KNOWN_CUSTOM_CALLS,
    STRUCTURE,
    TRANSCENDENTAL,
)
from go_rl.graphs.readers.hlo.shape import Shape
from go_rl.graphs.readers.hlo.text import Computation, Instruction, Module
from go_rl.graphs.readers.hlo.window import convolution_flops, is_cumulative, window_elements

CALLERS = (
    "to_apply", "calls", "body", "condition", "branch_computations", "true_computation",
    "false_computation", "select", "scatter", "called_computations",
)  # fmt: skip


LOOK_UPS = ("dynamic-slice", "gather", "slice")
"""Opcodes that read as much of their first operand as they write."""


@dataclass(frozen=True)
class Costs:
    """Costs of the computations of one module, and the treatment of unknown ones."""

    module: Module
    unknown: str
    computations: dict[str, Cost]
    trip_count: int | None = None
    """Trips of every loop whose count does not follow from the program."""

    @staticmethod
    def of(module: Module, unknown: str, trip_count: int | None = None) -> Costs:
        """Cost every computation, callees first.

        Raises:
            UnknownOperatorError: an unknown opcode or loop length, and ``unknown`` is "error".
            ReadError: recursion, or a call of an absent computation.
        """
        costs = Costs(module, unknown, {}, trip_count)
        for name in _callees_first(module):
            computation = module.computations[name]
            named = computation.by_name
            inside = (costs.of_instruction(i, named) for i in computation.instructions)
            costs.computations[name] = sum(inside, Cost())
        return costs

    def of_instruction(self, instruction: Instruction, named: Mapping[str, Instruction]) -> Cost:
        """Cost of one instruction whose operands ``named`` holds."""
        opcode = instruction.opcode
        if opcode == "call":
            return self._sum(instruction.callees("to_apply"))
        if opcode == "conditional":
            return self.computations[self.costliest_branch(instruction)]
        if opcode == "while":
            trips = self.trips(instruction, named)
            return self._sum(instruction.callees("body", "condition")).times(trips)
        if opcode in STRUCTURE or passes_through(instruction):
            return Cost()
        operands = operand_shapes(instruction, named)
        with _fitting(instruction):
            num_bytes = _bytes(instruction, operands)
            if opcode == "fusion":
                inside = self._sum(instruction.callees("calls"))
                return Cost(inside.flops, _fusion_bytes(instruction, operands, self.module), 1)
            if opcode == "custom-call":
                return Cost(self._custom_call(instruction, operands), num_bytes, 1)
            self._refuse_unknown(instruction)
            return Cost(self._flops(instruction, operands), num_bytes, 1)

    def costliest_branch(self, instruction: Instruction) -> str:
        """The branch of a conditional that costs most FLOP, then most bytes."""
        branches = instruction.callees(
            "branch_computations", "true_computation", "false_computation"
        )
        if not branches:
            raise ReadError(f"conditional {instruction.name!r} has no branches")
        cost = self.computations
        return max(branches, key=lambda name: (cost[name].flops, cost[name].num_bytes))

    def trips(self, loop: Instruction, named: Mapping[str, Instruction]) -> int:
        """Trip count of a loop; when it is unknown, the user's, or 1 if ``unknown`` is "bytes"."""
        count = trip_count(self.module, loop, named)
        count = self.trip_count if count is None else count
        if count is None and self.unknown == "error":
            raise UnknownOperatorError(
                f"loop {loop.source}: its trip count is not known from the program; give "
                "trip_count=N (--trip-count N), or count one pass through its body with "
                "unknown='bytes' (--unknown bytes)"
            )
        return 1 if count is None else count

    def _sum(self, names: Iterable[str]) -> Cost:
        return sum((self.computations[name] for name in names), Cost())

    def _custom_call(self, instruction: Instruction, operands: Sequence[Shape]) -> float:
        flops = custom_call_flops(instruction, operands)
        if flops is None and self.unknown != "bytes":
            raise UnknownOperatorError(
                f"instruction {instruction.source}: custom call {target_of(instruction)!r} has no "
                "known cost; unknown='bytes' counts its bytes only"
            )
        return flops or 0.0

    def _refuse_unknown(self, instruction: Instruction) -> None:
        opcode = instruction.opcode
        if opcode not in KNOWN and self.unknown != "bytes":
            raise UnknownOperatorError(
                f"instruction {instruction.source}: unknown HLO opcode {opcode!r}"
                f"{nearest(opcode, KNOWN)} With unknown='bytes' only its bytes are counted"
            )

    def _flops(self, instruction: Instruction, operands: Sequence[Shape]) -> float:
        opcode = instruction.opcode
        if opcode in TRANSCENDENTAL:
            return 0.0
        if opcode in ARITHMETIC:
            return float(instruction.shape.elements)
        if opcode in _APPLIED:
            inside = self._sum(instruction.callees("to_apply")).flops
            return inside * float(_APPLIED[opcode](instruction, operands))
        if opcode == "select-and-scatter":
            select, scatter = (
                self._sum(instruction.callees(a)).flops for a in ("select", "scatter")
            )
            windows = window_elements(instruction) - 1
            return operands[1].elements * (windows * select + scatter)
        if opcode in _DIRECT:
            return float(_DIRECT[opcode](instruction, operands))
        return 0.0


@contextmanager
def _fitting(instruction: Instruction) -> Iterator[None]:
    """Turn what a rule raises whose operands or attributes are not those of the opcode into a
    `ReadError` that names the instruction."""
    try:
        yield
    except (ArithmeticError, LookupError, TypeError, ValueError) as error:
        raise ReadError(
            f"instruction {instruction.name!r}: its operands and attributes do not fit "
            f"{instruction.opcode!r} ({error})"
        ) from error


def passes_through(instruction: Instruction) -> bool:
    """True for a custom call that only annotates its operand."""
    return instruction.opcode == "custom-call" and target_of(instruction) in KNOWN_CUSTOM_CALLS


def operand_shapes(instruction: Instruction, named: Mapping[str, Instruction]) -> list[Shape]:
    """Shapes of the operands; a `ReadError` names an operand that does not exist."""
    shapes = []
    for operand in instruction.operands:
        if operand not in named:
            raise ReadError(
                f"instruction {instruction.name!r} reads {operand!r}, which is absent"
                f"{nearest(operand, named)}"
            )
        shapes.append(named[operand].shape)
    return shapes


def _callees_first(module: Module) -> list[str]:
    """Computation names so that callees precede callers; refuses recursion."""
    called = {name: _called(module, each) for name, each in module.computations.items()}
    try:
        return list(TopologicalSorter(called).static_order())
    except CycleError as error:
        name = error.args[1][0]
        raise ReadError(f"computation {name!r} calls itself; HLO does not recurse") from error


def _called(module: Module, computation: Computation) -> list[str]:
    called = []
    for instruction in computation.instructions:
        for name in instruction.callees(*CALLERS):
            if name not in module.computations:
                raise ReadError(
                    f"instruction {instruction.name!r} calls {name!r}, which is absent"
                    f"{nearest(name, module.computations)}"
                )
            called.append(name)
    return called


def _bytes(instruction: Instruction, operands: Sequence[Shape]) -> float:
    output = instruction.shape.num_bytes
    if instruction.opcode == "transpose" and _is_relabelling(instruction, operands[0]):
        return 0.0
    if instruction.opcode in _SPECIAL_BYTES and operands:
        return _SPECIAL_BYTES[instruction.opcode](output, operands)
    return output + sum(shape.num_bytes for shape in operands)


def _fusion_bytes(fusion: Instruction, operands: Sequence[Shape], module: Module) -> float:
    """Results and operands; of an operand that is only looked up in, what the look-ups read.

    XLA's analysis counts such an operand whole where the look-up is fused, and not elsewhere.
    """
    total, users = fusion.shape.num_bytes, dict[str, list[Instruction]]()
    (name, *_) = fusion.callees("calls")
    body = module.computations[name].instructions
    for instruction in body:
        if instruction.opcode not in ("parameter", "constant"):
            for operand in dict.fromkeys(instruction.operands):
                users.setdefault(operand, []).append(instruction)
    for parameter in (i for i in body if i.opcode == "parameter"):
        number, readers = int(parameter.operands[0]), users.get(parameter.name, [])
        if number >= len(operands):
            continue
        whole = operands[number].num_bytes
        looked_up = bool(readers) and all(_looks_up(r, parameter.name) for r in readers)
        total += min(whole, sum(r.shape.num_bytes for r in readers)) if looked_up else whole
    return total


def _looks_up(reader: Instruction, table: str) -> bool:
    """Whether an instruction reads of a table only as much as it writes."""
    operands = list(reader.operands)
    return reader.opcode in LOOK_UPS and operands.count(table) == 1 and operands[0] == table


def _is_relabelling(transpose: Instruction, operand: Shape) -> bool:
    """True when the layouts make the transpose free: no element changes its place in memory."""
    dims, order = transpose.numbers("dimensions"), transpose.shape.layout
    if len(dims) != len(order):
        return False
    moved = [dims[d] for d in order if transpose.shape.dims[d] != 1]
    return moved == [d for d in operand.layout if operand.dims[d] != 1]


def _scatter_bytes(output: float, operands: Sequence[Shape]) -> float:
    # 3 N update shapes (input, output and updates) and the indices.
    count = len(operands) // 2
    updates = sum(shape.num_bytes for shape in operands[count + 1 :])
    return 3 * updates + operands[count].num_bytes


_SPECIAL_BYTES: dict[str, Callable[[float, Sequence[Shape]], float]] = {
    "slice": lambda out, ops: 2 * out,
    "dynamic-slice": lambda out, ops: 2 * out + sum(s.num_bytes for s in ops[1:2]),
    "dynamic-update-slice": lambda out, ops: (
        2 * ops[1].num_bytes + sum(s.num_bytes for s in ops[2:3])
    ),
    "gather": lambda out, ops: 2 * out + ops[1].num_bytes,
    "scatter": _scatter_bytes,
    "triangular-solve": lambda out, ops: out + ops[0].num_bytes / 2 + ops[1].num_bytes,
    "cholesky": lambda out, ops: out / 2 + ops[0].num_bytes / 2,
}


def _first_output(instruction: Instruction) -> Shape:
    shape = instruction.shape
    return shape.parts[0] if shape.is_tuple and shape.parts else shape


_APPLIED: dict[str, Callable[[Instruction, Sequence[Shape]], float | int]] = {
    "reduce": lambda i, ops: ops[0].elements - _first_output(i).elements,
    "reduce-window": lambda i, ops: _window_applications(i, ops),
    "scatter": lambda i, ops: ops[-1].elements,
    "map": lambda i, ops: i.shape.elements,
}
"""Number of times that the applied computation runs."""


def _dot_flops(instruction: Instruction, operands: Sequence[Shape]) -> float:
    contracted = [operands[0].dims[d] for d in instruction.numbers("lhs_contracting_dims")]
    if instruction.opcode == "dot":
        others = [operands[1].dims[d] for d in instruction.numbers("rhs_contracting_dims")]
        if contracted != others:
            raise ValueError(f"it sums over {contracted} and {others}")
    return 2.0 * instruction.shape.elements * math.prod(contracted)


def _ragged_dot_flops(instruction: Instruction, operands: Sequence[Shape]) -> float:
    """Every token (row of the ragged dimension) meets one group: ``2 M K N``, not times groups."""
    contracting = instruction.numbers("lhs_contracting_dims")
    ragged = instruction.numbers("lhs_ragged_dims")
    # Where the contracted dimension is ragged, the result has one product for each group.
    groups = operands[2].dims[-1] if set(ragged) & set(contracting) else 1
    return _dot_flops(instruction, operands) / groups


def _fft_flops(instruction: Instruction, operands: Sequence[Shape]) -> float:
    elements = max(operands[0].elements, instruction.shape.elements)
    return dense.fourier(elements, instruction.numbers("fft_length"))


def _top_k_flops(instruction: Instruction, operands: Sequence[Shape]) -> float:
    return dense.top_k(operands[0].elements, _first_output(instruction).dims[-1])


def _window_applications(instruction: Instruction, operands: Sequence[Shape]) -> float:
    out = _first_output(instruction)
    each = 1 if is_cumulative(instruction, operands[0], out) else window_elements(instruction) - 1
    return float(each * out.elements)


_DIRECT: dict[str, Callable[[Instruction, Sequence[Shape]], float | int]] = {
    "dot": _dot_flops,
    "ragged-dot": _ragged_dot_flops,
    "convolution": lambda i, ops: convolution_flops(i, ops[0], ops[1]),
    "sort": lambda i, ops: dense.sort(ops[0].elements),
    "topk": _top_k_flops,
    "fft": _fft_flops,
    "cholesky": lambda i, ops: ops[0].elements * ops[0].dims[-1] / 3,
    "triangular-solve": lambda i, ops: ops[1].elements * ops[0].dims[-1],
    "all-reduce": lambda i, ops: sum(leaf.elements for leaf in i.shape.leaves()),
    "reduce-scatter": lambda i, ops: sum(leaf.elements for leaf in i.shape.leaves()),
}
