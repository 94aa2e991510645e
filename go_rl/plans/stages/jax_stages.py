"""`export_jax_stages`: the stages of a JAX function as programs of `jax.export`.

A program takes its weights and inputs by name and returns its tensors by name:
``jax.export.deserialize(bytearray(file)).call({"x": …})``. The whole function lies beside them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import onnx
from jax import export

from go_rl.core import Plan, PlanError, ReadError
from go_rl.core.graph.op_kind import IS_FREE
from go_rl.graphs.readers.jax.stages import JaxProgram, JaxStage
from go_rl.plans.run.segments import cut_segments
from go_rl.plans.stages.folder import StageFolder, check_exportable, stage_folder
from go_rl.plans.stages.manifest import FROM_USER, Manifest, Stage, StageTensor

PLATFORMS = ("cpu", "cuda", "rocm", "tpu")
"""Backends that a program is lowered for."""
WHOLE = "whole.jax"
Types = Mapping[str, jax.ShapeDtypeStruct]


@dataclass(frozen=True, eq=False)
class JaxSource:
    """A function with its arguments, and what it was traced to."""

    function: Callable[..., Any]
    args: tuple[Any, ...]
    """Pytrees of arrays, which are written beside the stages, or of `jax.ShapeDtypeStruct`."""
    program: JaxProgram


def export_jax_stages(plan: Plan, source: JaxSource, folder: Path) -> Manifest:
    """Write one program a stage, the whole function, the arrays that there are, and the manifest
    into a new or empty folder.

    Raises:
        PlanError: the plan is of another function or a failure, or the folder has files.
        ReadError: a random key is an argument or goes between stages.
        OSError: the folder cannot be written.
    """
    program = source.program
    check_exportable(plan, program.graph, folder)
    stages = stages_of(program, plan)
    with stage_folder(folder, plan, [stage.device for stage in stages]) as writing:
        return _JaxWriter(source, stages, writing).write()


def stages_of(program: JaxProgram, plan: Plan) -> tuple[JaxStage, ...]:
    """Return the stages in an order in which they can run, with the devices of the plan: one a
    device where the devices can take turns, else several (`go_rl.plans.run.segments`)."""
    try:
        return program.stages(plan.device, plan.replicas)
    except PlanError:
        if plan.replicas:
            raise
    cut = cut_segments(program.graph, plan.device, plan.fusion_group)
    stages = program.stages(cut.segment, cut.copies)
    return tuple(replace(stage, device=int(cut.device[stage.device])) for stage in stages)


@dataclass(frozen=True, eq=False)
class _JaxWriter:
    """Everything that the programs are made of."""

    source: JaxSource
    stages: Sequence[JaxStage]
    folder: StageFolder

    def write(self) -> Manifest:
        """Write everything; return the manifest."""
        whole, notes = _exported(self._whole, self._leaf_types(), "the function")
        (self.folder.path / WHOLE).write_bytes(whole)
        sender: dict[str, int] = {}
        entries, tensors = [], {}
        for number, stage in enumerate(self.stages):
            entry, said = self._stage(number, stage, sender)
            sender |= dict.fromkeys(stage.outputs, number)
            tensors |= {tensor.name: tensor for tensor in entry.outputs}
            entries.append(entry)
            notes += said
        returned = dict.fromkeys(name for name in self.source.program.result_names if name)
        return self.folder.write_manifest(
            WHOLE, "jax", entries, [tensors[name] for name in returned],
            self.folder.write_arrays(self._arrays()), tuple(dict.fromkeys(notes)),
        )  # fmt: skip

    def _stage(
        self, number: int, stage: JaxStage, sender: Mapping[str, int]
    ) -> tuple[Stage, list[str]]:
        weights = dict(zip(stage.weights, stage.weight_types, strict=True))
        inputs = dict(zip(stage.inputs, stage.input_types, strict=True))

        def named(arrays: Mapping[str, Any]) -> dict[str, Any]:
            held, given = ([arrays[n] for n in names] for names in (weights, inputs))
            return dict(zip(stage.outputs, stage.function(tuple(held), tuple(given)), strict=True))

        text, notes = _exported(named, {**weights, **inputs}, f"stage {number}")
        file = self.folder.file(number, ".jax")
        file.write_bytes(text)
        return self.folder.stage(
            number, file, *self._operators(stage),
            float(sum(_num_bytes(each) for each in weights.values())),
            [*(_tensor(n, t, FROM_USER, True) for n, t in weights.items()),
             *(_tensor(n, t, sender.get(n, FROM_USER)) for n, t in inputs.items())],
            [_tensor(n, t, number) for n, t in zip(stage.outputs, stage.output_types, strict=True)],
        ), notes  # fmt: skip

    def _operators(self, stage: JaxStage) -> tuple[list[str], list[str]]:
        """Names of the operators of a stage, and of those that are in it as well."""
        graph, home = self.source.program.graph, self.folder.plan.device
        own, copies = list[str](), list[str]()
        for node in stage.nodes:
            if not IS_FREE[graph.kind[node]]:
                is_own = home[node] == stage.device
                (own if is_own else copies).append(str(graph.names[node]))
        return own, copies

    def _whole(self, arrays: Mapping[str, Any]) -> dict[str, Any]:
        """The function with its arguments and tensors by name."""
        program = self.source.program
        tree = jax.tree.structure(self.source.args)
        args = jax.tree.unflatten(tree, [arrays[name] for name in program.argument_names])
        results = jax.tree.leaves(self.source.function(*args))
        named = zip(program.result_names, results, strict=True)
        return {name: result for name, result in named if name is not None}

    def _leaf_types(self) -> Types:
        leaves = map(jax.typeof, jax.tree.leaves(self.source.args))
        names = self.source.program.argument_names
        return {
            name: jax.ShapeDtypeStruct(leaf.shape, leaf.dtype, weak_type=leaf.weak_type)
            for name, leaf in zip(names, leaves, strict=True)
        }

    def _arrays(self) -> dict[str, np.ndarray]:
        """The weights and inputs of which there are numbers, not types alone; of the types that
        tracing gave them."""
        types: dict[str, jax.ShapeDtypeStruct] = {}
        for stage in self.stages:
            types |= zip(stage.weights, stage.weight_types, strict=True)
            types |= zip(stage.inputs, stage.input_types, strict=True)
        given = self.source.program.inputs(self.source.args)
        return {
            name: np.asarray(array).astype(types[name].dtype) for name, array in given.items()
            if name in types and not isinstance(array, jax.ShapeDtypeStruct)
        }  # fmt: skip


def _exported(
    function: Callable[[Mapping[str, Any]], Any], types: Types, what: str
) -> tuple[bytes, list[str]]:
    """A serialised program, and notes."""
    for name, kind in types.items():
        if jnp.issubdtype(kind.dtype, jax.dtypes.extended):
            raise ReadError(
                f"{what} reads {name!r}, a random key, which is no plain array; make the key "
                "inside of the function, or pass jax.random.key_data of it"
            )
    try:
        return bytes(export.export(jax.jit(function), platforms=PLATFORMS)(types).serialize()), []
    except NotImplementedError as error:
        own = jax.default_backend()
        text = bytes(export.export(jax.jit(function), platforms=(own,))(types).serialize())
        reason = str(error).strip().splitlines()[0]
        return text, [f"{what} is lowered for {own} alone ({reason})"]


def _tensor(
    name: str, kind: jax.ShapeDtypeStruct, sender: int, is_weight: bool = False
) -> StageTensor:
    if jnp.issubdtype(kind.dtype, jax.dtypes.extended):
        raise ReadError(
            f"{name!r} is a random key, which cannot go between stages; keep its producer and its "
            "readers on one device (--fixed)"
        )
    element = onnx.TensorProto.DataType.Name(onnx.helper.np_dtype_to_tensor_dtype(kind.dtype))
    return StageTensor(name, element, tuple(kind.shape), sender, is_weight)


def _num_bytes(kind: jax.ShapeDtypeStruct) -> int:
    return kind.size * kind.dtype.itemsize
