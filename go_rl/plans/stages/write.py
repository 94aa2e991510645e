"""`export_stages`: the stages of a plan as ONNX files, written whole or not at all."""

from __future__ import annotations

import math
import os
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import BinaryIO

import onnx
from onnx import TensorProto, helper

from go_rl.core import OpGraph, Plan, PlanError, ReadError
from go_rl.core.files.paths import check_readable
from go_rl.graphs.readers.onnx.call import itemsize
from go_rl.graphs.readers.onnx.load import external_tensors, header_of, load_frugally
from go_rl.graphs.readers.onnx.reader import static_types
from go_rl.graphs.readers.onnx.values import inner_tensor_type
from go_rl.graphs.readers.onnx.worker import complete_in_subprocess
from go_rl.plans.stages.cut import CutModel, cut_model
from go_rl.plans.stages.flow import StageFlow
from go_rl.plans.stages.folder import StageFolder, check_exportable, stage_folder
from go_rl.plans.stages.manifest import Manifest, Stage, StageTensor

DATA = ".data"
PIECE = 1 << 24
"""Bytes that are copied at once."""


def export_stages(plan: Plan, graph: OpGraph, model: Path, folder: Path) -> Manifest:
    """Write one ONNX file a stage, and the manifest, into a new or empty folder.

    Args:
        plan: for ``graph``.
        graph: of the model, read with the plan's dims.
        model: ONNX file; of its arrays in other files each stage gets those that it reads.
        folder: to be made.

    Raises:
        PlanError: the plan is of another model or a failure, splits one operator of the file, or
            the folder has files.
        ReadError: the file cannot be read, or a tensor between stages has no known type.
        OSError: the folder cannot be written.
    """
    check_exportable(plan, graph, folder)
    whole = inlined_model(model)
    cut = cut_model(whole, graph, plan, str(model))
    with stage_folder(folder, plan, cut.device) as writing:
        return _StageWriter(whole, cut, writing, _types(whole, cut, plan, model), model).write()


def inlined_model(path: Path) -> onnx.ModelProto:
    """Return the model, arrays in other files and those of a large file by reference; local
    functions inlined.

    Raises:
        ReadError: it cannot be read.
    """
    model = load_frugally(path)
    if model.functions:
        light, _ = complete_in_subprocess(header_of(model, path), {"task": "inline"}, str(path))
        for field in ("node", "value_info"):
            model.graph.ClearField(field)
            getattr(model.graph, field).extend(getattr(light.graph, field))
        for field in ("functions", "opset_import"):
            model.ClearField(field)
            getattr(model, field).extend(getattr(light, field))
    return model


def _types(
    model: onnx.ModelProto, cut: CutModel, plan: Plan, path: Path
) -> Mapping[str, onnx.TypeProto]:
    """Types of all tensors; extents are open where the sizes of the plan decide them, and symbolic
    where ONNX's inference, which does not know the operators of runtimes, says so."""
    header = header_of(model, path)
    header.graph.ClearField("node")
    header.graph.node.extend(cut.nodes)
    try:
        header = onnx.shape_inference.infer_shapes(header, data_prop=True)
    except (onnx.shape_inference.InferenceError, ValueError) as error:
        raise ReadError(f"{path}: ONNX's shape inference fails ({error})") from error
    values = (*model.graph.input, *header.graph.value_info, *header.graph.output)
    found = {value.name: value.type for value in values}
    if any(o and o not in found for node in cut.nodes for o in node.output):
        for name, kind in static_types(header, plan.dims, str(path)).items():
            found.setdefault(name, _opened(kind))
    return found


def _opened(kind: onnx.TypeProto) -> onnx.TypeProto:
    """A type with its extents left open."""
    opened = onnx.TypeProto()
    opened.CopyFrom(kind)
    inner = inner_tensor_type(opened)
    for dim in () if inner is None else inner.shape.dim:
        dim.Clear()
    return opened


@dataclass(frozen=True)
class _StageWriter:
    """Everything that the files are made of."""

    model: onnx.ModelProto
    cut: CutModel
    folder: StageFolder
    types: Mapping[str, onnx.TypeProto]
    path: Path

    @cached_property
    def flow(self) -> StageFlow:
        """The tensors between stages."""
        return StageFlow(self.model, self.cut)

    def write(self) -> Manifest:
        """Write all stages and the manifest, which is returned."""
        stages = [self._stage(number) for number in range(len(self.cut.stages))]
        outputs = [self._tensor(name, self.flow.sender(name)) for name in self.flow.results]
        source = os.path.relpath(self.path.resolve(), self.folder.target.resolve())
        return self.folder.write_manifest(source, "onnxruntime", stages, outputs)

    def _stage(self, number: int) -> Stage:
        needed = self.flow.needed[number]
        inputs = [self._tensor(n, self.flow.sender(n)) for n in self.flow.inputs(number)]
        outputs = [self._tensor(name, number) for name in self.flow.outputs(number)]
        held = [t for t in self.model.graph.initializer if t.name in needed]
        file = self.folder.file(number, ".onnx")
        self._save(number, held, inputs, outputs, file)
        weight_bytes = float(sum(math.prod(t.dims) * itemsize(t.data_type) for t in held))
        return self.folder.stage(
            number, file, *self._operators(number), weight_bytes, inputs, outputs
        )

    def _operators(self, number: int) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """Names of the operators of a stage, and of those that are in it as well."""
        own, copies = list[str](), list[str]()
        for i in self.cut.stages[number]:
            made = next(name for name in self.cut.nodes[i].output if name)
            (own if self.cut.sender[made] == number else copies).append(self.cut.names[i])
        return tuple(own), tuple(copies)

    def _tensor(self, name: str, sender: int) -> StageTensor:
        kind = self.types.get(name)
        inner = None if kind is None else inner_tensor_type(kind)
        if kind is not None and kind.WhichOneof("value") not in (None, "tensor_type"):
            raise PlanError(
                f"{name!r} is a {kind.WhichOneof('value')}, and stages take and give tensors only; "
                "keep its producer and its readers on one device (--fixed), where both are "
                "operators"
            )
        if kind is None or inner is None or not inner.elem_type:
            raise ReadError(
                f"{self.path}: the type of tensor {name!r}, which goes between stages, is not "
                "known; add it to the model's value_info"
            )
        shape = None
        if inner.HasField("shape"):
            shape = tuple(_extent(dim) for dim in inner.shape.dim)
        return StageTensor(name, TensorProto.DataType.Name(inner.elem_type), shape, sender)

    def _save(
        self, number: int, held: list[TensorProto], inputs: list[StageTensor],
        outputs: list[StageTensor], path: Path,
    ) -> None:  # fmt: skip
        graph = helper.make_graph(
            [], f"{self.path.stem} stage {number}",
            [helper.make_value_info(t.name, self.types[t.name]) for t in inputs],
            [helper.make_value_info(t.name, self.types[t.name]) for t in outputs],
        )  # fmt: skip
        for i in self.cut.stages[number]:
            graph.node.append(self.cut.nodes[i])
            graph.node[-1].name = self.cut.names[i]
        graph.initializer.extend(held)
        graph.sparse_initializer.extend(
            array for array in self.model.graph.sparse_initializer
            if array.values.name in self.flow.needed[number]
        )  # fmt: skip
        stage = onnx.ModelProto(ir_version=self.model.ir_version, producer_name="go_rl")
        stage.opset_import.extend(self.model.opset_import)
        stage.graph.CopyFrom(graph)
        self._bring_external(stage, path)
        path.write_bytes(stage.SerializeToString())

    def _bring_external(self, stage: onnx.ModelProto, path: Path) -> None:
        """Copy the arrays that are not in memory into a file beside the stage, piece by piece."""
        tensors = list(external_tensors(stage))
        if not tensors:
            return
        beside = path.with_name(path.name + DATA)
        with beside.open("wb") as target:
            for tensor in tensors:
                place = {entry.key: entry.value for entry in tensor.external_data}
                size = math.ceil(math.prod(tensor.dims) * itemsize(tensor.data_type))
                source, start = self._source(tensor.name, place)
                if source == self.path and int(place["length"]) != size:
                    raise ReadError(
                        f"{source}: array {tensor.name!r} has {place['length']} bytes; "
                        f"its shape wants {size:,}"
                    )
                offset = target.tell()
                _copy_part(source, start, size, target)
                del tensor.external_data[:]
                for key, value in (("location", beside.name), ("offset", offset), ("length", size)):
                    tensor.external_data.add(key=key, value=str(value))

    def _source(self, name: str, place: Mapping[str, str]) -> tuple[Path, int]:
        """Return the file of an external array, and where it begins there. As ONNX has it, the
        file is in the model's folder: a model must not bring others into the stages."""
        location, offset = place.get("location", ""), place.get("offset", "0")
        inside = Path(os.path.normpath(location))
        if not location or inside.is_absolute() or os.pardir in inside.parts:
            raise ReadError(
                f"{self.path}: array {name!r} is stored in {location!r}; it must be a file in the "
                "model's folder"
            )
        if not (offset.isascii() and offset.isdecimal()):
            raise ReadError(
                f"{self.path}: array {name!r} is stored at offset {offset!r}; it must be a whole "
                "number of bytes"
            )
        return self.path.parent / inside, int(offset)


def _copy_part(source: Path, offset: int, size: int, target: BinaryIO) -> None:
    try:
        check_readable(source)
        file = source.open("rb")
    except OSError as error:
        raise ReadError(
            f"{source}: the model's arrays lie in it, and it cannot be read ({error.strerror})"
        ) from error
    with file:
        file.seek(offset)
        while size and (piece := file.read(min(size, PIECE))):
            target.write(piece)
            size -= len(piece)
    if size:
        raise ReadError(f"{source}: ends {size:,} bytes before an array of the model does")


def _extent(dim: onnx.TensorShapeProto.Dimension) -> int | str | None:
    if dim.HasField("dim_value"):
        return int(dim.dim_value)
    return dim.dim_param or None
