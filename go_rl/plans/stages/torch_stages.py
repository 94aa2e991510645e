"""`export_torch_stages`: the stages of a PyTorch program as ``.pt2`` archives of `torch.export`.

A program is cut between its ATen operators, wherever the plan cuts it, with the sizes of the plan;
what in-place operators write becomes a tensor of its own. Each archive takes its tensors by name
and returns them by name: ``torch.export.load(file).module()(x=…)["y"]``.
"""

# pyright: reportMissingImports=false, reportAttributeAccessIssue=false

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import onnx
import torch
from torch import fx
from torch.export import ExportedProgram

from go_rl.core import OpGraph, Plan, PlanError, ReadError
from go_rl.core.printable import last_line
from go_rl.plans.stages.assignment import NOWHERE, ProgramOperators, StageAssignment, assign_stages
from go_rl.plans.stages.folder import StageFolder, check_exportable, stage_folder
from go_rl.plans.stages.manifest import FROM_USER, Manifest, Stage, StageTensor
from go_rl.plans.stages.torch_program import flat_graph, num_bytes, quietly, weights_of

WHOLE = "whole.pt2"


def export_torch_stages(
    plan: Plan, program: ExportedProgram, graph: OpGraph, folder: Path, file: Path | None = None
) -> Manifest:
    """Write one archive a stage, and the manifest, into a new or empty folder.

    Args:
        plan: for ``graph``.
        program: of the model.
        graph: read from the program, with the plan's dims.
        folder: to be made.
        file: of the program; None: the whole program is written beside the stages.

    Raises:
        PlanError: the plan is of another model or a failure, or the folder has files.
        ReadError: a size is open in the plan, or the program changes its state.
        OSError: the folder cannot be written.
    """
    check_exportable(plan, graph, folder)
    flat = flat_graph(program, plan.dims)
    nodes = [node for node in flat.module.graph.nodes if node.op == "call_function"]
    owners = _Owners([flat.origin[node.name] for node in nodes])
    found = assign_stages(_operators(nodes), graph, plan, owners)
    with stage_folder(folder, plan, found.device) as writing:
        whole = WHOLE
        if file is None:
            torch.export.save(program, writing.path / WHOLE)
        else:
            whole = os.path.relpath(file.resolve(), folder.resolve())
        return _TorchWriter(flat.inputs, flat.module, nodes, found, writing).write(whole)


def _operators(nodes: list[fx.Node]) -> ProgramOperators:
    number = {node: i for i, node in enumerate(nodes)}
    above = [[number[n] for n in node.all_input_nodes if n in number] for node in nodes]
    given = [any(n.op == "placeholder" for n in node.all_input_nodes) for node in nodes]
    return ProgramOperators([node.name for node in nodes], above, above, given)


class _Owners:
    """Finds the operators that a node of the graph became: ``<path of its module>/<its name>``."""

    def __init__(self, names: list[str]) -> None:
        self._numbers: dict[str, list[int]] = {}
        for number, name in enumerate(names):
            self._numbers.setdefault(name, []).append(number)

    def __call__(self, name: str) -> list[int]:
        parts = (part.partition("#")[0] for part in reversed(name.split("/")))
        return next((self._numbers[part] for part in parts if part in self._numbers), [])


@dataclass(frozen=True, eq=False)
class _TorchWriter:
    """Everything that the archives are made of."""

    inputs: tuple[str, ...]
    """Names of the model's inputs."""
    module: fx.GraphModule
    nodes: list[fx.Node]
    cut: StageAssignment
    folder: StageFolder

    def write(self, whole: str) -> Manifest:
        """Write all stages and the manifest, which is returned."""
        stages = [self._stage(number) for number in range(len(self.cut.members))]
        outputs = [self._tensor(node, self._sender(node)) for node in self._results]
        return self.folder.write_manifest(whole, "torch", stages, outputs)

    def _stage(self, number: int) -> Stage:
        inside = [self.nodes[i] for i in self.cut.members[number]]
        made = set(inside)
        read = dict.fromkeys(n for node in inside for n in node.all_input_nodes if n not in made)
        received = [node for node in read if node.op != "get_attr"]
        sent = [n for n in inside if n in self._wanted and self._sender(n) == number]
        graph = fx.Graph()
        copies: dict[fx.Node, fx.Node] = {}
        for node in received:
            copies[node] = graph.placeholder(self._name(node))
        for node in read:
            if node.op == "get_attr":
                copies[node] = graph.get_attr(str(node.target))
        for node in inside:
            copies[node] = graph.node_copy(node, copies.__getitem__)
        graph.output({self._name(node): copies[node] for node in sent})
        file = self.folder.file(number, ".pt2")
        stage = fx.GraphModule(self.module, graph)
        examples = {self._name(node): _example(node) for node in received}
        try:
            with quietly():
                torch.export.save(torch.export.export(stage, (), examples, strict=False), file)
        except OSError:
            raise
        except Exception as error:
            raise ReadError(f"{file.name}: PyTorch cannot export it: {last_line(error)}") from error
        return self.folder.stage(
            number, file, *self._operators(number), float(sum(map(num_bytes, weights_of(stage)))),
            [self._tensor(node, self._sender(node)) for node in received],
            [self._tensor(node, number) for node in sent],
        )  # fmt: skip

    def _operators(self, number: int) -> tuple[list[str], list[str]]:
        """Names of the operators of a stage, and of those that are in it as well."""
        own, copies = list[str](), list[str]()
        for i in self.cut.members[number]:
            (own if self._sender(self.nodes[i]) == number else copies).append(self.nodes[i].name)
        return own, copies

    @cached_property
    def _results(self) -> list[fx.Node]:
        """Nodes that the model returns, without results that are None."""
        output = next(node for node in self.module.graph.nodes if node.op == "output")
        leaves = torch.utils._pytree.tree_leaves(output.args[0])
        results = [leaf for leaf in leaves if leaf is not None]
        for result in results:
            if not isinstance(result, fx.Node) or result.op != "call_function":
                raise PlanError(f"result {result} of the model is no tensor that an operator makes")
        return results

    @cached_property
    def _given(self) -> Mapping[fx.Node, str]:
        """The names that the user knows the inputs by."""
        return dict(zip(self.module.graph.find_nodes(op="placeholder"), self.inputs, strict=True))

    def _name(self, node: fx.Node) -> str:
        return self._given.get(node, node.name)

    @cached_property
    def _wanted(self) -> set[fx.Node]:
        """Nodes that some stage reads and does not make, or that the model returns."""
        found = set(self._results)
        for members in self.cut.members:
            inside = {self.nodes[i] for i in members}
            found |= {n for node in inside for n in node.all_input_nodes} - inside
        return found

    @cached_property
    def _number(self) -> Mapping[fx.Node, int]:
        return {node: i for i, node in enumerate(self.nodes)}

    def _sender(self, node: fx.Node) -> int:
        """The stage that sends a tensor; of a constant the first that makes it."""
        if node.op == "placeholder":
            return FROM_USER
        number = self._number[node]
        if self.cut.stage[number] != NOWHERE:
            return self.cut.stage[number]
        return next(at for at, members in enumerate(self.cut.members) if number in members)

    def _tensor(self, node: fx.Node, sender: int) -> StageTensor:
        value = node.meta["val"]
        if not isinstance(value, torch.Tensor):
            raise PlanError(
                f"{node.name!r} is a {type(value).__name__}, which cannot go between stages; keep "
                "its producer and its readers on one device (--fixed)"
            )
        element = onnx.TensorProto.DataType.Name(_ONNX_TYPES[value.dtype])
        return StageTensor(self._name(node), element, tuple(map(int, value.shape)), sender)


def _example(node: fx.Node) -> torch.Tensor:
    value = node.meta["val"]
    return torch.zeros(tuple(map(int, value.shape)), dtype=value.dtype)


_ONNX_TYPES = {
    torch.float32: onnx.TensorProto.FLOAT, torch.float64: onnx.TensorProto.DOUBLE,
    torch.float16: onnx.TensorProto.FLOAT16, torch.bfloat16: onnx.TensorProto.BFLOAT16,
    torch.int64: onnx.TensorProto.INT64, torch.int32: onnx.TensorProto.INT32,
    torch.int16: onnx.TensorProto.INT16, torch.int8: onnx.TensorProto.INT8,
    torch.uint8: onnx.TensorProto.UINT8, torch.bool: onnx.TensorProto.BOOL,
    torch.complex64: onnx.TensorProto.COMPLEX64, torch.complex128: onnx.TensorProto.COMPLEX128,
}  # fmt: skip
