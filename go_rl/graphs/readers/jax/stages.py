"""Programs from a plan: one JAX function for the nodes of each device.

The function is traced and flattened as `trace_jax` does it, so that node ``i`` of the graph is
equation ``i`` of the flat program; a stage binds the equations of its nodes. What the graph folds
is made again where it is read: a stage takes the base weights whole and remakes their views.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence, Set
from dataclasses import dataclass
from functools import cached_property
from graphlib import CycleError, TopologicalSorter
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Int

from go_rl.core import OpGraph, OpKind, PlanError, ReadError
from go_rl.graphs.readers.jax.inline import JaxOptions
from go_rl.graphs.readers.jax.reader import FlatProgram, flatten_jax, program_graph
from go_rl.graphs.readers.jax.values import Equation, LoopPart, Value

Arrays = tuple[Any, ...]
Crossing = tuple[int, int]
"""A tensor: its node, and which result of the node."""


@dataclass(frozen=True, eq=False)
class JaxStage:
    """The computation of one device in an iteration."""

    device: int
    function: Callable[[Arrays, Arrays], Arrays]
    """Takes the weights and the inputs, returns the outputs, each in the order of its names."""
    weights: tuple[str, ...]
    """Weights that it reads, by the names of the arguments' leaves (closed-over: ``const/<n>``)."""
    inputs: tuple[str, ...]
    """Tensors that come from the model's arguments or from other devices."""
    outputs: tuple[str, ...]
    """Tensors that other devices or the caller need."""
    nodes: tuple[int, ...]
    """Nodes of the graph, ascending."""
    weight_types: tuple[jax.ShapeDtypeStruct, ...]
    input_types: tuple[jax.ShapeDtypeStruct, ...]
    output_types: tuple[jax.ShapeDtypeStruct, ...]

    def lower(self) -> jax.stages.Lowered:
        """Return the stage lowered for the default device; compile it with ``.compile()``."""
        return jax.jit(self.function).lower(self.weight_types, self.input_types)


class JaxProgram:
    """A traced JAX function that can be cut into stages repeatedly."""

    def __init__(self, flat: FlatProgram) -> None:
        self.graph: OpGraph = program_graph(flat)
        self._flat = flat
        self._number = {id(e): i for i, e in enumerate(flat.equations)}
        self._base = {id(leaf.value): leaf.name for leaf in flat.leaves if leaf.value.weights}
        self._check()

    def stages(
        self, device: Int[np.ndarray, "N"], replicas: Mapping[int, Sequence[int]] | None = None
    ) -> tuple[JaxStage, ...]:
        """Return one stage for each device in use, producers before consumers.

        Args:
            device: [N] home device of each node.
            replicas: further devices that compute a node too, as in `go_rl.core.Plan`.

        Raises:
            PlanError: not one device for each node, a negative device, a copy without an input,
                or devices that need each other's results.
        """
        on = self._presence(device, replicas or {})
        home = [int(each) for each in device]
        inside = {used: {n for n, devices in enumerate(on) if used in devices}
                  for used in sorted(set().union(*on))}  # fmt: skip
        needs = {used: self._arriving(nodes) for used, nodes in inside.items()}
        sent: dict[int, set[Crossing]] = {used: set() for used in needs}
        for crossing in set().union(*needs.values(), self._returned()):
            sent[home[crossing[0]]].add(crossing)
        stages = {
            used: self._stage(used, sorted(inside[used]), needs[used], sorted(sent[used]))
            for used in needs
        }
        return tuple(stages[used] for used in self._device_order(home, needs))

    def part(self, nodes: Sequence[int]) -> JaxStage:
        """Return one stage, of device 0, that computes some nodes from the tensors they read."""
        inside = set(nodes)
        sent = sorted(c for c, readers in self._readers.items() if c[0] in inside
                      and not readers <= inside)  # fmt: skip
        return self._stage(0, sorted(inside), self._arriving(inside), sent)

    @cached_property
    def _readers(self) -> dict[Crossing, set[int]]:
        """Nodes that read each tensor; the caller is node -1."""
        readers: dict[Crossing, set[int]] = {crossing: {-1} for crossing in self._returned()}
        for number, equation in enumerate(self._flat.equations):
            for value in equation.inputs:
                if crossing := self._crossing(value):
                    readers.setdefault(crossing, set()).add(number)
        return readers

    @property
    def returned(self) -> tuple[str, ...]:
        """Tensors that the function returns, by name; its weights and plain numbers aside."""
        return tuple(map(self._tensor_name, sorted(self._returned())))

    @property
    def argument_names(self) -> tuple[str, ...]:
        """Name of each array of the arguments, in the order of flattening."""
        return tuple(self._leaf_name(leaf.value, leaf.name) for leaf in self._flat.leaves)

    @property
    def result_names(self) -> tuple[str | None, ...]:
        """Tensor that each result is, in the order of flattening; None: a weight, a number or an
        input, which no node makes."""
        crossings = [self._crossing(value) for value in self._flat.results]
        return tuple(
            None if c is None or self._is_input(c[0]) else self._tensor_name(c) for c in crossings
        )

    def inputs(self, args: Sequence[Any], kwargs: Mapping[str, Any] | None = None) -> dict:
        """Return the arrays of the arguments by name, weights and inputs, and the closed-over."""
        kwargs = kwargs or {}
        trees = [*args, *(kwargs[key] for key in sorted(kwargs))]
        leaves = jax.tree.leaves(trees)
        if len(leaves) != len(self._flat.leaves):
            raise PlanError(
                f"{self.graph.name}: traced with {len(self._flat.leaves)} arrays in its arguments, "
                f"given {len(leaves)}"
            )
        return {**self._closed_over(), **dict(zip(self.argument_names, leaves, strict=True))}

    def result(self, values: Mapping[str, Any]) -> Any:
        """Return what the function returns, from the tensors by name that its stages made."""
        results = [self._read(value, {}, values) for value in self._flat.results]
        return jax.tree.unflatten(self._flat.output_tree, results)

    def _leaf_name(self, value: Value, name: str) -> str:
        number = self._number.get(id(value.producer))
        return name if number is None else str(self.graph.names[number])

    def _closed_over(self) -> dict[str, Any]:
        arrays: dict[str, Any] = {}
        pending = [v for e in self._flat.equations for v in e.inputs] + list(self._flat.results)
        for value in pending:
            base = _base_of(value)
            if base.array is not None:
                arrays[self._weight_name(base)] = base.array
        return arrays

    def _check(self) -> None:
        """Raise a `ReadError` for a program whose equations cannot be run one by one."""
        title = self.graph.name
        if self._flat.inexact:
            raise ReadError(
                f"{title}: {self._flat.inexact[0]} cannot be cut into stages: the graph stands for "
                "one of its branches or trip counts only"
            )
        for equation, name in zip(self._flat.equations, self.graph.names, strict=True):
            if equation.eqn is None and equation.kind is not OpKind.INPUT:
                raise ReadError(
                    f"{title}: node {name!r} ({equation.op_type}) stands for a loop that its "
                    "operands alone do not compute, so it cannot run on a device; write the loop "
                    "out in Python, or with jax.lax.scan"
                )
            for value in equation.inputs:
                self._check_readable(value, str(name))

    def _check_readable(self, value: Value, reader: str) -> None:
        base = _base_of(value)
        readable = value.producer or base.known is not None or base.array is not None
        if not readable and id(base) not in self._base:
            raise ReadError(
                f"{self.graph.name}: node {reader!r} reads an operand of shape "
                f"{list(base.shape)} that is no plain array (a closed-over random key?); pass it "
                "as an argument"
            )

    def _presence(
        self, device: np.ndarray, replicas: Mapping[int, Sequence[int]]
    ) -> list[set[int]]:
        count = self.graph.num_nodes
        if len(device) != count:
            raise PlanError(
                f"{self.graph.name}: device has {len(device)} entries, the graph {count} nodes"
            )
        if count and int(np.min(device)) < 0:
            node = self.graph.names[int(np.argmin(device))]
            raise PlanError(f"{self.graph.name}: node {node!r} is on device {int(np.min(device))}")
        return [{int(c), *(int(r) for r in replicas.get(n, ()))} for n, c in enumerate(device)]

    def _arriving(self, inside: Set[int]) -> list[Crossing]:
        """Tensors that some nodes read and do not make, in order of first use."""
        found: dict[Crossing, None] = {}
        for number in sorted(inside):
            for value in self._flat.equations[number].inputs:
                crossing = self._crossing(value)
                if crossing and (crossing[0] not in inside or self._is_input(crossing[0])):
                    found[crossing] = None
        return list(found)

    def _returned(self) -> set[Crossing]:
        return {c for v in self._flat.results if (c := self._crossing(v))}

    def _crossing(self, value: Value) -> Crossing | None:
        if value.producer is None:
            return None
        return self._number[id(value.producer)], value.output

    def _is_input(self, number: int) -> bool:
        return self._flat.equations[number].kind is OpKind.INPUT

    def _tensor_name(self, crossing: Crossing) -> str:
        number, output = crossing
        name = str(self.graph.names[number])
        return f"{name}:{output}" if len(self._flat.equations[number].outputs) > 1 else name

    def _weight_name(self, base: Value) -> str:
        return self._base.get(id(base)) or min(base.weights)

    def _device_order(self, home: Sequence[int], needs: Mapping[int, list[Crossing]]) -> list[int]:
        before = {
            device: {home[n] for n, _ in tensors if not self._is_input(n)} - {device}
            for device, tensors in needs.items()
        }
        try:
            return list(TopologicalSorter(before).static_order())
        except CycleError as error:
            devices = " -> ".join(map(str, error.args[1]))
            raise PlanError(
                f"{self.graph.name}: devices {devices} need each other's results, so none can run "
                "as one stage; use a plan of the ring objective"
            ) from error

    def _stage(
        self, device: int, nodes: list[int], needs: list[Crossing], sent: list[Crossing]
    ) -> JaxStage:
        equations = [self._flat.equations[n] for n in nodes]
        bases: dict[str, Value] = {}
        for equation in equations:
            for value in equation.inputs:
                base = _base_of(value)
                if base.producer is None and base.weights:
                    bases.setdefault(self._weight_name(base), base)
        inputs = [self._value(crossing) for crossing in needs]
        outputs = [c for c in sent if not self._is_input(c[0])]
        made = [self._value(crossing) for crossing in outputs]

        def stage(weights: Arrays, arrays: Arrays) -> Arrays:
            known = dict(zip(bases, weights, strict=True))
            return self._run(
                equations, known, dict(zip(map(id, inputs), arrays, strict=True)), made
            )

        return JaxStage(
            device=device,
            function=stage,
            weights=tuple(bases),
            inputs=tuple(map(self._tensor_name, needs)),
            outputs=tuple(map(self._tensor_name, outputs)),
            nodes=tuple(nodes),
            weight_types=tuple(map(_type, bases.values())),
            input_types=tuple(map(_type, inputs)),
            output_types=tuple(map(_type, made)),
        )

    def _value(self, crossing: Crossing) -> Value:
        return self._flat.equations[crossing[0]].outputs[crossing[1]]

    def _run(
        self,
        equations: Sequence[Equation],
        known: Mapping[str, Any],
        made: dict[int, Any],
        outputs: Sequence[Value],
    ) -> Arrays:
        """Run equations in order; ``made`` holds the arrays so far by their values' ids."""
        for equation in equations:
            if equation.kind is not OpKind.INPUT:
                operands = [self._read(v, made, known) for v in equation.inputs]
                results = _bind(equation.eqn, operands)
                made.update(zip(map(id, equation.outputs), results, strict=True))
        return tuple(made[id(v)] for v in outputs)

    def _read(self, value: Value, made: dict[int, Any], known: Mapping[str, Any]) -> Any:
        """Return a value's array: made before, given by name, written down, or a view of one."""
        if id(value) in made:
            return made[id(value)]
        crossing = self._crossing(value)
        if crossing is not None:
            return known[self._tensor_name(crossing)]
        if value.view_of is not None:
            eqn, weight = value.view_of
            made[id(value)] = _bind(eqn, [self._read(weight, made, known)])[0]
            return made[id(value)]
        if value.weights:
            return known[self._weight_name(value)]
        return np.asarray(value.known, value.dtype)


def jax_program(
    function: Callable[..., Any],
    args: Sequence[Any],
    kwargs: Mapping[str, Any] | None = None,
    *,
    name: str | None = None,
    weights: Collection[int] | None = None,
    options: JaxOptions | None = None,
) -> JaxProgram:
    """Trace a function once, to be cut into stages; its ``graph`` is that of `trace_jax`.

    Arguments are as for `trace_jax`.

    Raises:
        ReadError: as `trace_jax`; also a ``cond``, a ``while`` of given trip count or one that is
            folded, for which the graph does not contain all that they compute.
    """
    return JaxProgram(
        flatten_jax(function, args, kwargs, name=name, weights=weights, options=options)
    )


def _base_of(value: Value) -> Value:
    while value.view_of is not None:
        value = value.view_of[1]
    return value


def _bind(eqn: Any, operands: Sequence[Any]) -> Sequence[Any]:
    if isinstance(eqn, LoopPart):
        if eqn.row is None:
            return (jnp.stack(operands),)
        return (jax.lax.index_in_dim(operands[0], eqn.row, keepdims=False),)
    with eqn.ctx.manager:
        params = eqn.primitive.get_bind_params(eqn.params)
        results = eqn.primitive.bind(*operands, **params)
    return results if eqn.primitive.multiple_results else (results,)


def _type(value: Value) -> jax.ShapeDtypeStruct:
    return jax.ShapeDtypeStruct(value.shape, value.dtype)
