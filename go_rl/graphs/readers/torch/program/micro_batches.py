"""Micro-batches of a joint program: its forward and backward pass once for each part of a batch.

The rules are those of `readers.jax.training.micro_batches`: equal parts, the same weights,
gradients of the mean of the losses. As where PyTorch's users accumulate gradients, each loss is
divided before its backward pass, and running statistics are updated by one micro-batch after the
other.
"""

# pyright: reportMissingImports=false, reportAttributeAccessIssue=false

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import torch
from torch._guards import detect_fake_mode
from torch.utils._pytree import keystr, tree_flatten_with_path, tree_map

from go_rl.core.errors import ReadError
from go_rl.core.graph.micro_batch import micro_batch_scope
from go_rl.graphs.readers.weight_returns import part_of_batch

NO_BATCH = "All tensors that forward takes are split along their first axis"
"""Said to users whose inputs differ in it."""
Values = dict[torch.fx.Node, torch.fx.Node]
"""Nodes of one micro-batch by those of the program that is repeated."""


def first_part(arguments: Mapping[str, Any], count: int) -> dict[str, Any]:
    """Return the arguments of a module for the first of ``count`` micro-batches.

    Raises:
        ReadError: the tensors have no common batch axis, or it does not divide.
    """
    leaves = tree_flatten_with_path(dict(arguments))[0]
    extents = [
        (f"input {keystr(path)} of shape {tuple(leaf.shape)}", leaf.shape[0])
        for path, leaf in leaves
        if _is_split(leaf)
    ]
    size = part_of_batch(extents, count, NO_BATCH)
    return tree_map(lambda leaf: leaf[:size] if _is_split(leaf) else leaf, dict(arguments))


def _is_split(leaf: Any) -> bool:
    return isinstance(leaf, torch.Tensor) and leaf.dim() > 0


def in_micro_batches(joint: torch.fx.GraphModule, count: int) -> torch.fx.GraphModule:
    """Return a joint program that takes ``count`` batches at once, in as many micro-batches.

    Args:
        joint: of one micro-batch; placeholders and the output have ``desc`` in their ``meta``, as
            AOTAutograd writes it.
        count: micro-batches.

    Raises:
        ReadError: the module returns no loss, or writes into an input.
    """
    split = _Split(joint, count)
    for part in range(count):
        split.add_part(part)
    return split.finished()


@dataclass
class _Split:
    """A joint program while its micro-batches are written."""

    joint: torch.fx.GraphModule
    count: int
    graph: torch.fx.Graph = field(default_factory=torch.fx.Graph)
    inputs: Values = field(default_factory=dict)
    """Placeholders by those of the program that is repeated."""
    results: list[Any] = field(default_factory=list)
    """Results so far: sums, and statistics after the last micro-batch."""

    def __post_init__(self) -> None:
        self.mode: Any = detect_fake_mode([node.meta.get("val") for node in self._nodes])
        self.output = self._nodes[-1]
        self.kinds = [type(desc).__name__ for desc in self.output.meta["desc"]]
        self._check()
        for node in self._nodes:
            if node.op == "placeholder":
                self.inputs[node] = self._whole(node)

    @property
    def _nodes(self) -> list[torch.fx.Node]:
        return list(self.joint.graph.nodes)

    def _check(self) -> None:
        for value, desc, kind in self._results():
            if kind == "PlainAOTOutput" and value.meta["val"].numel() != 1:
                raise ReadError(
                    "micro-batches need the loss, and the module returns a result of shape "
                    f"{tuple(value.meta['val'].shape)}; let forward return the loss, a single "
                    "number"
                )
            if kind == "InputMutationAOTOutput" and not hasattr(desc.mutated_input, "target"):
                raise ReadError("micro-batches of a module that writes into an input are not read")

    def _results(self) -> Iterator[tuple[Any, Any, str]]:
        results = zip(self.output.args[0], self.output.meta["desc"], self.kinds, strict=True)
        return (result for result in results if result[0] is not None)

    def _whole(self, node: torch.fx.Node) -> torch.fx.Node:
        """Add a placeholder, with all micro-batches of an input."""
        made = self.graph.placeholder(node.name)
        made.meta = dict(node.meta)
        if self._divided(node):
            value = node.meta["val"]
            with self.mode:
                shape = (value.shape[0] * self.count, *value.shape[1:])
                made.meta["val"] = torch.empty(shape, dtype=value.dtype, device=value.device)
        return made

    def _divided(self, node: torch.fx.Node) -> bool:
        is_input = type(node.meta["desc"]).__name__ == "PlainAOTInput"
        return is_input and _is_split(node.meta.get("val"))

    def add_part(self, part: int) -> None:
        """Add the forward and backward pass of a micro-batch, and add its gradients to the sums."""
        values: Values = {}
        for node in self._nodes[:-1]:
            if node.op == "placeholder":
                values[node] = self._operand(node, part)
                continue
            made = self.graph.node_copy(node, values.__getitem__)
            made._rename(f"{node.name}_{micro_batch_scope(part)}")
            made.meta = _scoped(node.meta, part)
            values[node] = made
        found = [None if node is None else values[node] for node in self.output.args[0]]
        self._carry_statistics(found)
        if not self.results:
            self.results = found
            return
        kept = zip(self.results, found, self.kinds, strict=True)
        self.results = [
            last if kind == "InputMutationAOTOutput" or last is None else self._sum(total, last)
            for total, last, kind in kept
        ]

    def _operand(self, node: torch.fx.Node, part: int) -> torch.fx.Node:
        """Return what a micro-batch reads of an input: its part; of the loss's gradient, one
        ``count``-th."""
        given, value = self.inputs[node], node.meta.get("val")
        if self._divided(node):
            size = value.shape[0]
            bounds = (0, part * size, (part + 1) * size)
            return self._call(torch.ops.aten.slice.Tensor, (given, *bounds), value, part)
        if type(node.meta["desc"]).__name__ == "TangentAOTInput":
            return self._call(torch.ops.aten.div.Tensor, (given, self.count), value, part)
        return given

    def _carry_statistics(self, found: list[Any]) -> None:
        """Let the next micro-batch read the buffers that this one has written."""
        by_name = {getattr(node.meta["desc"], "target", None): node for node in self.inputs}
        for value, desc, kind in zip(found, self.output.meta["desc"], self.kinds, strict=True):
            if kind == "InputMutationAOTOutput" and value is not None:
                self.inputs[by_name[desc.mutated_input.target]] = value

    def _sum(self, total: torch.fx.Node, found: torch.fx.Node) -> torch.fx.Node:
        made = self._call(torch.ops.aten.add.Tensor, (total, found), found.meta["val"])
        made.meta = {**found.meta, "desc": None}
        return made

    def _call(
        self, target: Any, args: tuple[Any, ...], value: Any, part: int | None = None
    ) -> torch.fx.Node:
        made = self.graph.call_function(target, args)
        made.meta = {"val": value} if part is None else _scoped({"val": value}, part)
        return made

    def finished(self) -> torch.fx.GraphModule:
        """Return the program: gradients are summed, the loss is their mean."""
        results = [
            self._call(torch.ops.aten.div.Tensor, (made, self.count), made.meta["val"])
            if kind == "PlainAOTOutput"
            else made
            for made, kind in zip(self.results, self.kinds, strict=True)
        ]
        output = self.graph.output(tuple(results))
        output.meta = dict(self.output.meta)
        return torch.fx.GraphModule(self.joint, self.graph)


def _scoped(meta: Mapping[str, Any], part: int) -> dict[str, Any]:
    """Put the scope of a micro-batch before the modules that a node comes from."""
    scope = micro_batch_scope(part)
    stack = meta.get("nn_module_stack") or {"": ("", "")}
    scoped = {
        key or "top": (f"{scope}/{path}" if path else scope, kind)
        for key, (path, kind) in stack.items()
    }
    return {**meta, "nn_module_stack": scoped}
