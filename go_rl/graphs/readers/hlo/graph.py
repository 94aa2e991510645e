"""Translation of a parsed HLO module to an `OpGraph`.

Calls are inlined, conditionals become their most expensive branch, a fusion is one node, and a loop
is unrolled when that yields at most `UNROLL_NODES` nodes, else folded into one `OpKind.CONTROL`
node that costs its body and condition times the trip count. Tuples, bitcasts and parameters of
inlined computations are not nodes.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from go_rl.core import ElementType, OpKind, ReadError
from go_rl.core.graph.element_type import computing_type
from go_rl.graphs.readers.cost import expanded_densely
from go_rl.graphs.readers.graph_builder import GraphBuilder, Node
from go_rl.graphs.readers.hlo.cost import Costs, operand_shapes, passes_through
from go_rl.graphs.readers.hlo.custom_calls import custom_call_kind
from go_rl.graphs.readers.hlo.loops import constant_integer, known_number, part_taken
from go_rl.graphs.readers.hlo.opcodes import STRUCTURE, kind_of
from go_rl.graphs.readers.hlo.shape import Shape
from go_rl.graphs.readers.hlo.text import Computation, Instruction
from go_rl.graphs.readers.hlo.window import hlo_geometry

UNROLL_NODES = 2_000
"""Largest number of nodes into which a loop is unrolled."""
MOST_STEPS, GROWTH = 300_000, 20
"""Limit on instructions that inlining processes: a number, or a multiple of those in the text."""
_SLICES = ("slice", "dynamic-slice")
_KIND_ORDER = (
    OpKind.CONVOLUTION,
    OpKind.MATMUL,
    OpKind.GATHER,
    OpKind.REDUCTION,
    OpKind.ELEMENTWISE,
    OpKind.MOVEMENT,
)


@dataclass(frozen=True)
class HloTensor:
    """One array: a result of a node, a weight, or (neither) a literal scalar."""

    shape: Shape
    sender: int | None = None
    output: int = 0
    weight: str | None = None
    known: int | None = None
    """The number itself, where a whole number does not depend on the parameters."""


Value: TypeAlias = HloTensor | tuple[Any, ...]
"""An array, or a tuple of values."""


@dataclass
class _Frame:
    """A computation in the middle of being inlined."""

    computation: Computation
    arguments: tuple[Value, ...]
    prefix: str
    target: str = ""
    """The caller's instruction that receives the result."""
    trip: int = 0
    trips: int = 1
    place: int = 0
    values: dict[str, Value] = field(default_factory=dict)


class HloWalk:
    """Traverses a module from its entry and adds a node for each instruction that does work."""

    def __init__(self, costs: Costs, builder: GraphBuilder, weights: Collection[int]) -> None:
        self.costs = costs
        self.module = costs.module
        self.builder = builder
        self.weights = frozenset(weights)

    def run(self) -> None:
        """Add every node and edge, and mark the results of the entry computation."""
        frames = [_Frame(self.module.computations[self.module.entry], (), "")]
        written = sum(len(c.instructions) for c in self.module.computations.values())
        left = max(MOST_STEPS, GROWTH * written)
        while frames:
            left -= 1
            if left < 0:
                raise ReadError(
                    f"the module has {written:,} instructions, but far more when its calls are "
                    "inlined; it may call itself over and over"
                )
            frame = frames[-1]
            if frame.place == len(frame.computation.instructions):
                self._return(frames)
                continue
            instruction = frame.computation.instructions[frame.place]
            frame.place += 1
            callee = self._callee(instruction, frame)
            if callee is not None:
                frames.append(callee)
            else:
                frame.values[instruction.name] = self._value(instruction, frame)

    def _return(self, frames: list[_Frame]) -> None:
        frame = frames.pop()
        result = frame.values[frame.computation.root.name]
        if frame.trip + 1 < frame.trips:
            trip, base = frame.trip + 1, frame.prefix.rsplit("/", 2)[0]
            place = frame.computation, (result,), f"{base}/{trip}/", frame.target
            frames.append(_Frame(*place, trip, frame.trips))
        elif frames:
            frames[-1].values[frame.target] = result
        else:
            self._mark_outputs(result)

    def _mark_outputs(self, result: Value) -> None:
        for tensor in leaves(result):
            self.builder.mark_output(tensor.sender)

    def _callee(self, instruction: Instruction, frame: _Frame) -> _Frame | None:
        """The computation to inline in place of ``instruction``, or None."""
        opcode, prefix = instruction.opcode, f"{frame.prefix}{instruction.name}/"
        if opcode == "call":
            (name,) = instruction.callees("to_apply")
            arguments = tuple(_operands(instruction, frame))
            return _Frame(self.module.computations[name], arguments, prefix, instruction.name)
        if opcode == "conditional":
            name = self.costs.costliest_branch(instruction)
            branches = instruction.callees(
                "branch_computations", "true_computation", "false_computation"
            )
            argument = _operands(instruction, frame)[1 + branches.index(name)]
            return _Frame(self.module.computations[name], (argument,), prefix, instruction.name)
        if opcode == "while":
            trips = self.costs.trips(instruction, frame.computation.by_name)
            (name,) = instruction.callees("body")
            size = self.costs.computations[name].operators
            if trips > 0 and trips * size <= UNROLL_NODES:
                arguments = tuple(_operands(instruction, frame))
                body = self.module.computations[name]
                return _Frame(body, arguments, f"{prefix}0/", instruction.name, 0, trips)
        return None

    def _value(self, instruction: Instruction, frame: _Frame) -> Value:
        opcode = instruction.opcode
        if opcode == "parameter":
            return self._parameter(instruction, frame)
        if opcode == "constant":
            weight = f"{frame.computation.name}/{instruction.name}"
            kept = instruction.shape.elements > 1 or bool(instruction.shape.dims)
            number = None if kept else constant_integer(instruction)
            return HloTensor(instruction.shape, weight=weight if kept else None, known=number)
        if opcode in STRUCTURE or passes_through(instruction):
            return _grouping(instruction, _operands(instruction, frame))
        if opcode == "while":
            trips = self.costs.trips(instruction, frame.computation.by_name)
            if trips == 0:
                return _operands(instruction, frame)[0]
            loop = frame.prefix + instruction.name
            self.builder.meta["notes"].append(f"loop {loop} is one node: {trips} trips")
        if opcode == "ragged-dot":
            self._note_expansion(instruction, frame)
        return self._node(instruction, frame)

    def _note_expansion(self, instruction: Instruction, frame: _Frame) -> None:
        groups = operand_shapes(instruction, frame.computation.by_name)[2].dims[-1]
        note = expanded_densely(frame.prefix + instruction.name, groups)
        self.builder.meta["notes"].append(note)

    def _parameter(self, instruction: Instruction, frame: _Frame) -> Value:
        number = int(instruction.operands[0])
        if frame.computation.name != self.module.entry:
            if number >= len(frame.arguments):
                raise ReadError(
                    f"computation {frame.computation.name!r} has parameter {number}, but is "
                    f"called with {len(frame.arguments)} operands"
                )
            return frame.arguments[number]
        if number in self.weights:
            return _results(instruction.shape, None, instruction.name)
        node = Node(
            name=instruction.name,
            op_type="parameter",
            kind=OpKind.INPUT,
            output_bytes=instruction.shape.num_bytes,
            element_type=_first(instruction.shape).type,
            source=instruction.source,
            **_layout(instruction.shape),
        )
        return _results(instruction.shape, self.builder.add_node(node), None)

    def _node(self, instruction: Instruction, frame: _Frame) -> Value:
        named = frame.computation.by_name
        cost = self.costs.of_instruction(instruction, named)
        operands = _operands(instruction, frame)
        read = [t for value in operands for t in leaves(value)]
        shapes = operand_shapes(instruction, named)
        kept = {t.weight: t.shape for t in read if t.weight is not None}
        kept |= self._fused_constants(instruction)
        sizes = {name: shape.num_bytes for name, shape in kept.items()}
        sliced = instruction.opcode in _SLICES and bool(kept)
        numbers = [v.known if isinstance(v, HloTensor) else None for v in operands]
        kind = self._kind(instruction)
        node = Node(
            name=frame.prefix + instruction.name,
            op_type=instruction.opcode,
            kind=kind,
            flops=cost.flops,
            bytes_accessed=cost.num_bytes,
            output_bytes=instruction.shape.num_bytes,
            # Of a weight that is sliced (the layers of a scan) only the slice is kept.
            weight_bytes=instruction.shape.num_bytes if sliced else float(sum(sizes.values())),
            weight_itemsize=max((shape.itemsize for shape in kept.values()), default=0.0),
            weight_arrays=_slice_of(instruction, kept, numbers) if sliced else sizes,
            source=frame.prefix + instruction.source,
            geometry=hlo_geometry(instruction, shapes),
            element_type=_type_computed_in(kind, shapes, instruction.shape),
            **_layout(instruction.shape),
        )
        number = self.builder.add_node(node)
        for tensor in read:
            if tensor.sender is not None:
                self.builder.add_edge(tensor.sender, number, tensor.shape.num_bytes, tensor.output)
        result = _results(instruction.shape, number, None)
        if isinstance(result, HloTensor):
            return dataclasses.replace(result, known=known_number(instruction, numbers))
        return result

    def _fused_constants(self, instruction: Instruction) -> dict[str, Shape]:
        """Constant arrays inside a fusion or a folded loop."""
        return {
            f"{name}/{inner.name}": inner.shape
            for name in instruction.callees("calls", "body")
            for inner in self.module.computations[name].instructions
            if inner.opcode == "constant" and inner.shape.dims
        }

    def _kind(self, instruction: Instruction) -> OpKind:
        if instruction.opcode == "custom-call":
            return custom_call_kind(instruction)
        if instruction.opcode != "fusion":
            return kind_of(instruction.opcode)
        bodies = (self.module.computations[n] for n in instruction.callees("calls"))
        inside = {kind_of(i.opcode) for body in bodies for i in body.instructions}
        return next((kind for kind in _KIND_ORDER if kind in inside), OpKind.OTHER)


def _slice_of(
    instruction: Instruction, kept: Mapping[str, Shape], numbers: Sequence[int | None]
) -> dict[str, float]:
    """The part of a weight that a slice keeps: one array wherever the same part is taken."""
    ((weight, whole), *others) = kept.items()
    part = part_taken(instruction, whole, numbers[1:])
    return {weight + part: instruction.shape.num_bytes} if part and not others else {}


def leaves(value: Value) -> Iterator[HloTensor]:
    """Yield the arrays of a value, depth first."""
    stack = [value]
    while stack:
        top = stack.pop()
        if isinstance(top, HloTensor):
            yield top
        else:
            stack.extend(reversed(top))


def _operands(instruction: Instruction, frame: _Frame) -> list[Value]:
    for name in instruction.operands:
        if name not in frame.values:
            raise ReadError(
                f"instruction {instruction.name!r} reads {name!r}, which no earlier instruction "
                f"of {frame.computation.name!r} defines"
            )
    return [frame.values[name] for name in instruction.operands]


def _grouping(instruction: Instruction, operands: list[Value]) -> Value:
    """The value of a tuple, an element of one, or a mere renaming."""
    if instruction.opcode == "tuple":
        return tuple(operands)
    if not operands:
        return ()
    first = operands[0]
    if instruction.opcode == "get-tuple-element":
        index = instruction.numbers("index")
        if isinstance(first, HloTensor) or not index or index[0] >= len(first):
            raise ReadError(f"instruction {instruction.name!r} takes an absent element of a tuple")
        return first[index[0]]
    if instruction.opcode == "bitcast" and isinstance(first, HloTensor):
        return dataclasses.replace(first, shape=instruction.shape)
    if instruction.opcode == "custom-call" and instruction.shape.leaves():
        return _passed(instruction.shape, tuple(operands) if instruction.shape.is_tuple else first)
    if instruction.opcode.endswith("-barrier") and len(operands) > 1:
        return tuple(operands)
    # The results of a finished asynchronous operation follow its operands.
    if not instruction.shape.is_tuple and not isinstance(first, HloTensor) and first:
        return first[0]
    return first


def _passed(shape: Shape, value: Value) -> Value:
    """A value whose arrays have another shape: of a whole, the part on one device, or back."""
    if isinstance(value, HloTensor):
        return value if shape.is_tuple else dataclasses.replace(value, shape=shape)
    if len(shape.parts) != len(value):
        return value
    return tuple(_passed(part, inner) for part, inner in zip(shape.parts, value, strict=True))


def _results(shape: Shape, sender: int | None, weight: str | None) -> Value:
    """A value of ``shape`` whose arrays are the results 0, 1, … of ``sender``, or weights."""
    count = iter(range(len(shape.leaves())))

    def build(part: Shape) -> Value:
        if part.is_tuple:
            return tuple(build(inner) for inner in part.parts)
        output = next(count)
        key = None if weight is None else f"{weight}/{output}"
        return HloTensor(part, sender, 0 if sender is None else output, key)

    return build(shape)


def _layout(shape: Shape) -> dict:
    first = _first(shape)
    return {"output_itemsize": first.itemsize, "output_shape": first.dims}


def _first(shape: Shape) -> Shape:
    """The first array of a shape."""
    return (shape.leaves() or [shape])[0]


def _type_computed_in(kind: OpKind, operands: Sequence[Shape], result: Shape) -> ElementType:
    read = [(leaf.type, len(leaf.dims)) for shape in operands for leaf in shape.leaves()]
    return computing_type(kind, read, [leaf.type for leaf in result.leaves()])
