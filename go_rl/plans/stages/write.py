"""`export_stages`: the stages of a plan as ONNX files, written whole or not at all."""

from __future__ import annotations

import json
import math
import os
import shutil
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

import onnx
from google.protobuf.message import DecodeError
from onnx import TensorProto, helper

from go_rl.core import OpGraph, Plan, PlanError, ReadError
from go_rl.core.files.scratch_folder import scratch_folder
from go_rl.graphs.readers.onnx.call import itemsize
from go_rl.graphs.readers.onnx.load import external_tensors, load_header
from go_rl.graphs.readers.onnx.types import inner_tensor_type
from go_rl.graphs.readers.onnx.worker import complete_in_subprocess
from go_rl.plans.stages.cut import NOWHERE, CutModel, cut_model
from go_rl.plans.stages.manifest import FILE, FROM_USER, Manifest, Stage, Tensor
from go_rl.verify.check_plan import check_same_graph

LARGEST_FILE = 1_900_000_000
"""Bytes of a file beyond which its arrays lie beside it: protobuf ends at 2 GiB."""
DATA = ".data"


def export_stages(plan: Plan, graph: OpGraph, model: Path, folder: Path) -> Manifest:
    """Write one ONNX file a stage, and the manifest, into a new or empty folder.

    Args:
        plan: for ``graph``.
        graph: of the model, read with the plan's dims.
        model: ONNX file; its external data are linked or copied beside the stages.
        folder: to be made.

    Raises:
        PlanError: the plan is of another model or a failure, splits one operator of the file, or
            the folder has files.
        ReadError: the file cannot be read, or a tensor between stages has no known type.
        OSError: the folder cannot be written.
    """
    check_same_graph(plan, graph)
    if not plan.evaluation.status.ok:
        raise PlanError(f"the plan is a failure ({plan.evaluation.status}); nothing to export")
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise PlanError(f"{folder}: is there already; name a new or empty folder")
    whole = _loaded(model)
    cut = cut_model(whole, graph, plan, str(model))
    writer = _Writer(whole, cut, plan, _types(whole, cut, model), model)
    source = os.path.relpath(model.resolve(), folder.resolve())
    folder.parent.mkdir(parents=True, exist_ok=True)
    with scratch_folder("export", folder.parent) as scratch:
        manifest = replace(writer.write(scratch), model=source)
        (scratch / FILE).write_text(json.dumps(manifest.to_json(), indent=1, ensure_ascii=False))
        if folder.exists():
            folder.rmdir()
        scratch.rename(folder)
    folder.chmod(0o755)
    return manifest


def _loaded(path: Path) -> onnx.ModelProto:
    """The model with its arrays, those in other files by reference; local functions inlined."""
    try:
        model = onnx.load(str(path), load_external_data=False)
    except (DecodeError, ValueError, OSError) as error:
        raise ReadError(f"{path}: cannot be read ({error})") from error
    if model.functions:
        model, _ = complete_in_subprocess(model, {"task": "inline"}, str(path))
    return model


def _types(model: onnx.ModelProto, cut: CutModel, path: Path) -> Mapping[str, onnx.TypeProto]:
    """Types of all tensors that ONNX's inference knows, symbolic extents kept."""
    header = load_header(path)
    header.graph.ClearField("node")
    header.graph.node.extend(cut.nodes)
    del header.functions[:]
    try:
        header = onnx.shape_inference.infer_shapes(header, data_prop=True)
    except (onnx.shape_inference.InferenceError, ValueError) as error:
        raise ReadError(f"{path}: ONNX's shape inference fails ({error})") from error
    values = (*model.graph.input, *header.graph.value_info, *header.graph.output)
    return {value.name: value.type for value in values}


@dataclass(frozen=True)
class _Writer:
    """Everything that the files are made of."""

    model: onnx.ModelProto
    cut: CutModel
    plan: Plan
    types: Mapping[str, onnx.TypeProto]
    path: Path

    def write(self, folder: Path) -> Manifest:
        """Write all stages; return the manifest."""
        stages = tuple(self._stage(number, folder) for number in range(len(self.cut.stages)))
        outputs = tuple(
            self._tensor(value.name, self._sender(value.name)) for value in self.model.graph.output
        )
        return Manifest(
            self.path.stem, self.plan.graph_hash, str(self.plan.hardware.get("name")),
            self.plan.objective, self.plan.evaluation.throughput, dict(self.plan.dims), stages,
            outputs, tuple(self.plan.notes),
        )  # fmt: skip

    def _stage(self, number: int, folder: Path) -> Stage:
        cut, graph = self.cut, self.model.graph
        members = cut.stages[number]
        made = {o for i in members for o in cut.nodes[i].output if o}
        needed = {name for i in members for name in cut.reads[i]} - made
        stored = {t.name for t in graph.initializer}
        stored |= {s.values.name for s in graph.sparse_initializer}
        inputs = [self._tensor(n, self._sender(n)) for n in self._in_order(needed - stored)]
        wanted = self._wanted(number, made)
        outputs = [self._tensor(name, number) for name in wanted]
        device = cut.device[number]
        file = f"stage-{number:02d}-device-{device}.onnx"
        held = [t for t in graph.initializer if t.name in needed]
        self._save(number, needed, inputs, outputs, folder / file)
        seconds = self.plan.evaluation.device_seconds
        alone = cut.device.count(device) == 1 and len(seconds) > device
        return Stage(
            file, device, self._kind(device), len(members),
            float(sum(math.prod(t.dims) * itemsize(t.data_type) for t in held)),
            float(seconds[device]) if alone else None, tuple(inputs), tuple(outputs),
        )  # fmt: skip

    def _wanted(self, number: int, made: set[str]) -> list[str]:
        """Results of a stage that others, or the user, read from it."""
        found = {value.name for value in self.model.graph.output}
        for other, members in enumerate(self.cut.stages):
            if other != number:
                own = {o for i in members for o in self.cut.nodes[i].output if o}
                found |= {name for i in members for name in self.cut.reads[i]} - own
        return self._in_order({n for n in found & made if self._sender(n) in (number, NOWHERE)})

    def _in_order(self, names: set[str]) -> list[str]:
        """Names as the model has them: its inputs, then results in order."""
        order = [value.name for value in self.model.graph.input]
        order += [o for node in self.cut.nodes for o in node.output]
        return [name for name in dict.fromkeys(order) if name in names]

    def _sender(self, name: str) -> int:
        if name in self.cut.sender:
            at = self.cut.sender[name]
            return at if at != NOWHERE else self._maker(name)
        if any(value.name == name for value in self.model.graph.input):
            return FROM_USER
        raise PlanError(f"result {name!r} of the model is a stored array; nothing computes it")

    def _maker(self, name: str) -> int:
        """The first stage that makes a constant."""
        for number, members in enumerate(self.cut.stages):
            if any(name in self.cut.nodes[i].output for i in members):
                return number
        raise PlanError(f"result {name!r} of the model is a constant that no stage makes")

    def _tensor(self, name: str, sender: int) -> Tensor:
        kind = self.types.get(name)
        inner = None if kind is None else inner_tensor_type(kind)
        if kind is None or inner is None or not inner.elem_type:
            raise ReadError(
                f"{self.path}: the type of tensor {name!r}, which goes between stages, is not "
                "known; add it to the model's value_info"
            )
        if kind.WhichOneof("value") != "tensor_type":
            raise PlanError(
                f"{name!r} is a {kind.WhichOneof('value')}, which cannot go between stages; keep "
                "its producer and its readers on one device (--fixed)"
            )
        shape = None
        if inner.HasField("shape"):
            shape = tuple(_extent(dim) for dim in inner.shape.dim)
        return Tensor(name, TensorProto.DataType.Name(inner.elem_type), shape, sender)

    def _kind(self, device: int) -> str:
        kinds = [
            str(group["kind"])
            for group in self.plan.hardware["devices"]
            for _ in range(int(group.get("count", 1)))
        ]
        return kinds[device]

    def _save(
        self, number: int, needed: set[str], inputs: list[Tensor], outputs: list[Tensor], path: Path
    ) -> None:
        members = self.cut.stages[number]
        graph = helper.make_graph(
            [], f"{self.path.stem} stage {number}",
            [helper.make_value_info(t.name, self.types[t.name]) for t in inputs],
            [helper.make_value_info(t.name, self.types[t.name]) for t in outputs],
        )  # fmt: skip
        for i in members:
            graph.node.append(self.cut.nodes[i])
            graph.node[-1].name = self.cut.names[i]
        source = self.model.graph
        graph.initializer.extend(t for t in source.initializer if t.name in needed)
        graph.sparse_initializer.extend(
            s for s in source.sparse_initializer if s.values.name in needed
        )
        stage = onnx.ModelProto(ir_version=self.model.ir_version, producer_name="go_rl")
        stage.opset_import.extend(self.model.opset_import)
        stage.graph.CopyFrom(graph)
        self._bring_external(stage, path.parent)
        if stage.ByteSize() > LARGEST_FILE:
            onnx.save(stage, str(path), save_as_external_data=True, location=path.name + DATA)
        else:
            path.write_bytes(stage.SerializeToString())

    def _bring_external(self, stage: onnx.ModelProto, folder: Path) -> None:
        """Put the files with arrays beside the stage: linked where the file system can, else
        copied."""
        for tensor in external_tensors(stage):
            for entry in tensor.external_data:
                if entry.key == "location":
                    entry.value = _beside(self.path.parent / entry.value, folder)


def _beside(source: Path, folder: Path) -> str:
    target = folder / source.name
    if not target.exists():
        try:
            os.link(source, target)
        except OSError:
            shutil.copyfile(source, target)
    return target.name


def _extent(dim: onnx.TensorShapeProto.Dimension) -> int | str | None:
    if dim.HasField("dim_value"):
        return int(dim.dim_value)
    return dim.dim_param or None
