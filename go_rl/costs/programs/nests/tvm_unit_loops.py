"""Serial loops of one iteration are taken out of a schedule before it is lowered, as TVM does
before it extracts features: with them, a reduction across threads gets a buffer more."""

from __future__ import annotations

from typing import Any

from go_rl.costs.programs.nests.tvm_arithmetic import INDEX_OPERATIONS, LOAD, kind_of, nodes_in
from go_rl.costs.timing.tvm_calls import import_tvm


def without_unit_loops(module: Any) -> Any:
    """Return a scheduled module without its serial loops of one iteration, and with the number 1
    for each selection between values that are read from no buffer."""
    tvm = import_tvm()
    functions = {
        name: function.with_body(_Rewriter().visit(function.body))
        for name, function in module.functions.items()
    }
    return tvm.IRModule(functions)


class _Rewriter:
    """Copies statements of TIR."""

    def __init__(self) -> None:
        tvm = import_tvm()
        self._tirx, self._s_tir = tvm.tirx, tvm.s_tir
        self._unit: set[int] = set()

    def visit(self, node: Any) -> Any:
        """Return a copy of a statement."""
        match kind_of(node):
            case "For":
                return self._loop(node)
            case "SBlockRealize":
                return self._realized(node)
            case "SeqStmt":
                return self._tirx.SeqStmt([self.visit(inner) for inner in node.seq])
            case "BufferStore":
                return self._store(node)
        return node

    def _loop(self, loop: Any) -> Any:
        one = kind_of(loop.extent) == "IntImm" and int(loop.extent.value) == 1
        if one and int(loop.kind) == 0 and not loop.annotations:
            self._unit.add(hash(loop.loop_var))
            return self.visit(loop.body)
        return self._tirx.For(
            loop.loop_var, loop.min, loop.extent, loop.kind, self.visit(loop.body),
            loop.thread_binding, loop.annotations,
        )  # fmt: skip

    def _realized(self, realize: Any) -> Any:
        block = realize.block
        body = self.visit(block.body)
        copy = self._s_tir.SBlock(
            block.iter_vars, block.reads, block.writes, block.name_hint, body, block.init,
            block.alloc_buffers, block.match_buffers, block.annotations,
        )  # fmt: skip
        values = [self._at_zero(value) for value in realize.iter_values]
        return self._s_tir.SBlockRealize(values, self._at_zero(realize.predicate), copy)

    def _at_zero(self, expression: Any) -> Any:
        """Return an expression with 0 for the variables of the loops taken out."""
        kind = kind_of(expression)
        if kind == "Var" and hash(expression) in self._unit:
            return self._tirx.IntImm(str(expression.ty.dtype), 0)
        if kind in INDEX_OPERATIONS or kind in ("LT", "LE", "GT", "GE", "EQ", "NE", "And", "Or"):
            make = getattr(self._tirx, kind)
            return make(self._at_zero(expression.a), self._at_zero(expression.b))
        return expression

    def _store(self, store: Any) -> Any:
        return self._tirx.BufferStore(store.buffer, self._selected(store.value), store.indices)

    def _selected(self, value: Any) -> Any:
        kind = kind_of(value)
        if kind == "Select" and not any(kind_of(node) == LOAD for node in nodes_in(value)):
            return self._tirx.const(1.0, str(value.ty.dtype))
        return value
