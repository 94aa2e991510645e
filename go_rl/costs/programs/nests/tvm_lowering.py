"""Front end of TVM: a scheduled function of TIR as a loop nest.

Needs TVM, an optional extra: ``pip install 'go_rl[tvm]' -c constraints.txt``.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass, field
from types import ModuleType
from typing import Any

from go_rl.costs.programs.nests.check_nest import check_nest
from go_rl.costs.programs.nests.index import NestError
from go_rl.costs.programs.nests.nest import (
    BLOCKS,
    FLOAT32,
    OUTSIDE,
    PARALLEL,
    SERIAL,
    THREADS,
    UNROLLED,
    VECTORISED,
    VIRTUAL_THREAD,
    Access,
    ForLoop,
    LoopNest,
    NestBuffer,
    Statement,
)
from go_rl.costs.programs.nests.tvm_arithmetic import (
    CONSTANTS,
    LOAD,
    index_of,
    kind_of,
    nodes_in,
    operations_of,
)
from go_rl.costs.programs.nests.tvm_unit_loops import without_unit_loops
from go_rl.costs.timing.tvm_calls import import_tvm

KINDS = (SERIAL, PARALLEL, VECTORISED, UNROLLED)
"""Annotations in the order of TVM's ``ForKind``; what follows is bound to a thread."""
TAGS = {
    **{f"blockIdx.{name[-1]}": name for name in BLOCKS},
    **{f"threadIdx.{name[-1]}": name for name in THREADS},
}
AUTO_UNROLL = "pragma_auto_unroll_max_step"
TENSOR_CORES = "tvm.s_tir.tensor_intrin"
"""Module whose import takes 14 s and serves tensor cores only: MetaSchedule asks for it."""
Nodes = list[ForLoop | Statement]


def import_meta_schedule() -> Any:
    """Return TVM's MetaSchedule.

    Raises:
        MissingDependencyError: TVM is not installed.
    """
    import_tvm()
    sys.modules.setdefault(TENSOR_CORES, ModuleType(TENSOR_CORES))
    from tvm.s_tir import meta_schedule  # pyright: ignore[reportMissingImports]

    return meta_schedule


def lowered(module: Any) -> Any:
    """Return a scheduled module after the passes behind which TVM extracts features."""
    passes = import_tvm().s_tir.transform
    for step in (
        passes.RemoveWeightLayoutRewriteBlock(skip_tensor_rewrite=True),
        without_unit_loops,
        passes.LowerCrossThreadReduction(),
        passes.LowerInitBlock(),
        passes.PlanAndUpdateBufferAllocationLocation(),
        passes.ConvertBlocksToOpaque(),
        passes.CompactBufferAllocation(),
        passes.StmtSimplify(),
        passes.LowerAutoCopy(),
        passes.UnifyThreadBinding(),
        passes.LowerMatchBuffer(),
        passes.StmtSimplify(),
    ):
        module = step(module)
    return module


def nest_from_tvm(module: Any, gpu: bool = False, other_types: bool = False) -> LoopNest:
    """Return the loop nest of a scheduled module with one function.

    Args:
        module: as a schedule has it (``Schedule.mod``).
        gpu: whether it is made for a GPU.
        other_types: whether arrays of other types count as float32; else they are refused.

    Raises:
        MissingDependencyError: TVM is not installed.
        NestError: it has several functions, another type than float32, sizes that are not
            constant, an index that is not understood, or more leaves than any bucket.
    """
    functions = list(lowered(module).functions.values())
    if len(functions) != 1:
        raise NestError(f"a module with {len(functions)} functions; a tensor program is one")
    walk = _Walk(other_types)
    for parameter in functions[0].params:
        walk.buffer(parameter, OUTSIDE)
    body = walk.visit(functions[0].body)
    return check_nest(LoopNest(tuple(walk.buffers), tuple(body), gpu))


@dataclass
class _Walk:
    """Walk over a program: buffers met so far, and the loops around."""

    other_types: bool = False
    buffers: list[NestBuffer] = field(default_factory=list)
    _number: dict[int, int] = field(default_factory=dict)
    _loops: dict[int, int] = field(default_factory=dict)
    _around: list[int] = field(default_factory=list)
    _met: int = 0

    def buffer(self, buffer: Any, inside: int) -> int:
        """Return the number of a buffer, which is known from now on."""
        if hash(buffer) not in self._number:
            shape = tuple(_constant(size, f"buffer {buffer.name}") for size in buffer.shape)
            if str(buffer.dtype) != FLOAT32 and not self.other_types:
                raise NestError(
                    f"buffer {buffer.name!r}: its type is {buffer.dtype}; only {FLOAT32} is known"
                )
            self._number[hash(buffer)] = len(self.buffers)
            self.buffers.append(NestBuffer(str(buffer.name), shape, str(buffer.scope()), inside))
        return self._number[hash(buffer)]

    def visit(self, node: Any) -> Nodes:
        """Return the loops and statements of a statement of TIR."""
        match kind_of(node):
            case "For":
                return self._loop(node)
            case "SBlockRealize":
                return self._block(node.block)
            case "SeqStmt":
                return [each for inner in node.seq for each in self.visit(inner)]
            case "IfThenElse":
                cases = (node.then_case, node.else_case)
                return [x for case in cases if case is not None for x in self.visit(case)]
            case "AttrStmt":
                return self.visit(node.body)
            case "BufferStore":
                return [self._statement(node)]
            case "Evaluate":
                return []
        raise NestError(f"a {kind_of(node)} in TIR, which go_rl does not know")

    def _block(self, block: Any) -> Nodes:
        inside = self._around[-1] if self._around else OUTSIDE
        for buffer in block.alloc_buffers:
            self.buffer(buffer, inside)
        return self.visit(block.body)

    def _loop(self, loop: Any) -> Nodes:
        extent = _constant(loop.extent, f"loop {loop.loop_var}")
        first = _constant(loop.min, f"loop {loop.loop_var}")
        if first:
            raise NestError(f"loop {loop.loop_var} starts at {first}; only 0 is known")
        annotation = _annotation(loop)
        if extent == 1 and annotation == SERIAL and not loop.annotations:
            return self.visit(loop.body)  # its variable was simplified away
        number, self._met = self._met, self._met + 1
        self._loops[hash(loop.loop_var)] = number
        self._around.append(number)
        body = self.visit(loop.body)
        self._around.pop()
        if not body:  # what it repeated is done once, when weights are packed
            self._met = number
            return []
        told = int(loop.annotations.get(AUTO_UNROLL, 0))
        return [ForLoop(extent, annotation, tuple(body), max(told, 0))]

    def _statement(self, store: Any) -> Statement:
        reads = [node for node in nodes_in(store.value) if kind_of(node) == LOAD]
        return Statement(
            write=self._access(store.buffer, store.indices),
            reads=tuple(dict.fromkeys(self._access(x.source, x.indices) for x in reads)),
            operations=operations_of(store.value),
            constant=kind_of(store.value) in CONSTANTS,
        )

    def _access(self, buffer: Any, indices: Any) -> Access:
        known = hash(buffer) in self._number
        if not known:
            raise NestError(f"buffer {buffer.name!r} is used before it is allocated")
        return Access(
            self._number[hash(buffer)], tuple(index_of(index, self._loops) for index in indices)
        )


def _constant(expression: Any, where: str) -> int:
    if kind_of(expression) != "IntImm":
        raise NestError(f"{where}: size {expression} is not constant")
    return int(expression.value)


def _annotation(loop: Any) -> str:
    if int(loop.kind) < len(KINDS):
        return KINDS[int(loop.kind)]
    tag = str(loop.thread_binding.thread_tag)
    return VIRTUAL_THREAD if tag.startswith("vthread") else TAGS[tag]
