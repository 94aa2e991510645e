"""`StageFlow`: the tensors that enter and leave each stage of a cut ONNX model."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import onnx

from go_rl.core import PlanError
from go_rl.plans.stages.assignment import NOWHERE
from go_rl.plans.stages.cut import CutModel
from go_rl.plans.stages.manifest import FROM_USER


@dataclass(frozen=True)
class StageFlow:
    """Names of the tensors between stages."""

    model: onnx.ModelProto
    cut: CutModel

    def inputs(self, number: int) -> list[str]:
        """Return the tensors that a stage gets: inputs of the model, then results of others."""
        return self._in_order(self.needed[number] - self.stored)

    def outputs(self, number: int) -> list[str]:
        """Return the results of a stage that others, or the user, read from it."""
        own = (n for n in self._made[number] if n in self._read or n in self.results)
        return self._in_order({name for name in own if self.sender(name) == number})

    def sender(self, name: str) -> int:
        """Return the stage that sends a tensor; of a constant, which every stage makes by itself,
        the first that does.

        Raises:
            PlanError: no operator computes it.
        """
        if name in self._given:
            return FROM_USER
        if self.cut.sender.get(name, NOWHERE) != NOWHERE:
            return self.cut.sender[name]
        makers = (number for number, made in enumerate(self._made) if name in made)
        first = next(makers, None)
        if first is None:
            raise PlanError(
                f"result {name!r} of the model is one of its inputs or stored arrays; no operator "
                "computes it"
            )
        return first

    @cached_property
    def results(self) -> tuple[str, ...]:
        """Names of the model's outputs."""
        return tuple(value.name for value in self.model.graph.output)

    @cached_property
    def stored(self) -> set[str]:
        """Names of stored arrays."""
        graph = self.model.graph
        sparse = (array.values.name for array in graph.sparse_initializer)
        return {*(array.name for array in graph.initializer), *sparse}

    @cached_property
    def needed(self) -> list[set[str]]:
        """Names that each stage reads and does not make, stored arrays included."""
        reads = [{n for i in inside for n in self.cut.reads[i]} for inside in self.cut.stages]
        return [names - made for names, made in zip(reads, self._made, strict=True)]

    @cached_property
    def _given(self) -> set[str]:
        """Names of the inputs that the user gives."""
        return {value.name for value in self.model.graph.input} - self.stored

    @cached_property
    def _made(self) -> list[set[str]]:
        """Names of the results of each stage."""
        nodes = self.cut.nodes
        return [{o for i in inside for o in nodes[i].output if o} for inside in self.cut.stages]

    @cached_property
    def _read(self) -> set[str]:
        """Names that some stage reads and does not make."""
        return set().union(*self.needed)

    def _in_order(self, names: set[str]) -> list[str]:
        """Names as the model has them: its inputs, then results in order."""
        return sorted(names, key=self._place.__getitem__)

    @cached_property
    def _place(self) -> dict[str, int]:
        """Place of each tensor: inputs, then results."""
        names = [value.name for value in self.model.graph.input]
        names += [o for node in self.cut.nodes for o in node.output]
        return {name: place for place, name in enumerate(names)}
