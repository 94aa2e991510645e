"""`SINKS`: the notations in which a plan leaves, one row each; `render_sink`, `write_sink`."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from go_rl.core import Hardware, OpGraph, Plan, SplitError
from go_rl.core.errors import nearest
from go_rl.core.files.paths import path_of
from go_rl.core.files.whole_file import write_bytes, writing
from go_rl.core.printable import counted
from go_rl.graphs.readers.onnx.load import external_tensors, load_frugally
from go_rl.graphs.readers.recognise import Format, is_onnx, names_function, recognise
from go_rl.plans.sinks.devices_by_name import (
    render_affinities,
    render_device_map,
    render_json,
    render_shardy,
)
from go_rl.plans.sinks.genai_pipeline import render_genai
from go_rl.plans.sinks.layer_stages import render_megatron, render_vllm
from go_rl.plans.sinks.llama_cpp import render_llama_cpp
from go_rl.plans.sinks.module_stages import render_split_spec, render_torchtitan
from go_rl.plans.sinks.onnx_stages import annotated_model
from go_rl.plans.sinks.onnxruntime_names import render_layer_assignment
from go_rl.plans.sinks.placed import Placed, is_from_onnx, placed, placed_devices
from go_rl.plans.splits.layer_cuts import JOINED
from go_rl.plans.splits.moves import Move
from go_rl.plans.splits.notations import NOTATION_NAMES, read_split
from go_rl.plans.splits.split import Split

FileMaker = Callable[[Placed, str | Path, str | Path], bytes]
"""Makes a file from a plan, the model's file and the path where it goes."""


@dataclass(frozen=True)
class Sink:
    """A notation in which a plan leaves."""

    name: str
    english: str
    """Words for lists: its name in the tool, and which option or file takes it."""
    render: Callable[[Placed], str] | None = None
    """Makes the text; None: it is no text."""
    of_model: FileMaker | None = None
    """Makes the file where the model's own is needed; None: it is a text."""
    is_string: bool = False
    """Whether the text is one short line."""
    names_operators: bool = False
    """Whether it goes by the names that operators have in the ONNX file."""
    of_program: bool = False
    """Whether the model is a JAX function, by its name, or a file of StableHLO, not of ONNX."""


def _render_iree(plan: Placed, model: str | Path, path: str | Path) -> bytes:
    from go_rl.plans.sinks.iree import render_iree  # the other sinks need no JAX

    return render_iree(plan, model, path)


TABLE: tuple[Sink, ...] = (
    Sink("json", "device by module and node; go-rl check --split reads it", render_json),
    Sink("hf", "device_map of transformers and accelerate", render_device_map),
    Sink("vllm", "VLLM_PP_LAYER_PARTITION, an environment variable", render_vllm, is_string=True),
    Sink("torchtitan", "parallelism.module_fqns_per_model_part", render_torchtitan),
    Sink(
        "megatron",
        "--pipeline-model-parallel-layout of Megatron-LM",
        render_megatron,
        is_string=True,
    ),
    Sink("torch", "split_spec of torch.distributed.pipelining", render_split_spec),
    Sink("llama.cpp", "-ts and -ot of llama.cpp", render_llama_cpp, is_string=True),
    Sink("openvino", "affinities for OpenVINO's HETERO", render_affinities, names_operators=True),
    Sink(
        "onnxruntime",
        "session.name_based_layer_assignment",
        render_layer_assignment,
        names_operators=True,
    ),
    Sink("shardy", "assignment of named computations to meshes, Shardy MPMD", render_shardy),
    Sink("onnx", "a copy of the model with pipeline stages", of_model=annotated_model),
    Sink("genai", "decoder-pipeline of onnxruntime-genai", of_model=render_genai),
    Sink("iree", "StableHLO with flow.tensor.transfer", of_model=_render_iree, of_program=True),
)
SINKS: tuple[str, ...] = tuple(sink.name for sink in TABLE)
"""Names of the sinks."""


def render_sink(name: str, plan: Plan, graph: OpGraph, model: str | Path | None = None) -> str:
    """Return a plan as the text of a sink, which was read back and says the same.

    Arguments as for `write_sink`.

    Raises:
        SplitError: no such sink, one that is no text, or one that cannot say the plan, whose parts
            are finer.
        PlanError: the plan is a failure, or of another graph.
    """
    sink = _named(name)
    if sink.render is None:
        raise SplitError(f"{name} is made from the model's file; name a file to write (--out FILE)")
    return _rendered(sink.render, placed(name, plan, graph, _file_of(sink, graph, model)))


def sink_notes(name: str, plan: Plan, graph: OpGraph) -> tuple[str, ...]:
    """Return sentences on what a sink leaves out of a plan: the copies of operators."""
    copied = [node for node in plan.replicas if not graph.is_fed[node]]
    if not copied or name == "genai":
        return ()
    node = copied[0]
    others = ", ".join(map(str, plan.replicas[node]))
    return (
        f"{name} cannot say copies: {counted(len(copied), 'operator')} that further devices "
        f"compute, such as {str(graph.names[node])!r} of device {plan.device[node]} on {others}, "
        "are written for their own device alone (--rules relay plans without copies)",
    )


def moved_string(split: Split, move: Move, graph: OpGraph, hardware: Hardware) -> str | None:
    """Return a split of one string, such as ``8,8,9,7``, after a move; None: its notation is no
    string, or cannot say it."""
    sink = next((sink for sink in TABLE if sink.name == split.notation), None)
    if sink is None or sink.render is None or not sink.is_string:
        return None
    device = split.device.copy()
    device[list(move.nodes)] = move.target
    try:
        return _rendered(sink.render, placed_devices(sink.name, graph, hardware, device)).strip()
    except SplitError:  # virtual stages
        return None


def _rendered(render: Callable[[Placed], str], what: Placed) -> str:
    """The text, read back where go_rl reads the notation."""
    text = render(what)
    if what.sink in NOTATION_NAMES:
        _check_same(what, read_split(text, what.graph, what.hardware, what.sink))
    return text


def write_sink(
    name: str, plan: Plan, graph: OpGraph, path: str | Path, model: str | Path | None = None
) -> str:
    """Write a plan to the file of a sink, whole or not at all; return the text, empty for a file
    that is none.

    Args:
        name: one of `SINKS`.
        plan: a legal plan.
        graph: what it is for.
        path: file to write.
        model: the ONNX file that the graph was read from, the name of the JAX function, or the
            file of StableHLO, for sinks that need it.

    Raises:
        SplitError: see `render_sink`; the model's file is missing, or of another model; or the file
            cannot be written.
        PlanError: see `render_sink`.
    """
    path, sink = path_of(path, "a sink's file", SplitError), _named(name)
    if model is not None and path.exists():
        _check_apart(path, Path(model))
    text = ""
    if sink.of_model is None:
        text = render_sink(name, plan, graph, model)
        content = text.encode()
    else:
        content = sink.of_model(placed(name, plan, graph), _model_of(sink, model), path)
    with writing(path, SplitError):
        write_bytes(path, content)
    return text


def _check_apart(path: Path, model: Path) -> None:
    """Raise a `SplitError` for a file to write that is the model's, or holds arrays of it."""
    if not model.exists():
        return
    if path.samefile(model):
        raise SplitError(f"{path}: is the model itself; name another file")
    for tensor in external_tensors(load_frugally(model)) if is_onnx(model) else ():
        place = {entry.key: entry.value for entry in tensor.external_data}
        beside = model.parent / place.get("location", "")
        if beside.exists() and path.samefile(beside):
            raise SplitError(f"{path}: holds arrays of {model}; name another file")


def _file_of(sink: Sink, graph: OpGraph, model: str | Path | None) -> Path | None:
    """The model's ONNX file, for a sink that goes by the names of its operators."""
    if not sink.names_operators:
        return None
    if not is_from_onnx(graph):
        raise SplitError(
            f"{sink.name} names the operators of an ONNX file, and {graph.name!r} was not read "
            "from one; json names the nodes of any graph"
        )
    return Path(model) if model is not None and is_onnx(model) else None


def _model_of(sink: Sink, model: str | Path | None) -> str | Path:
    """The model's file, or name, if the sink can take it."""
    if model is not None and (_is_program if sink.of_program else is_onnx)(model):
        return model
    wanted = "the ONNX file that the plan is for"
    if sink.of_program:
        wanted = "the JAX function that the plan is for (module:function) or its file of StableHLO"
    raise SplitError(f"{sink.name} needs {wanted}, not {'a graph' if model is None else model}")


def _is_program(model: str | Path) -> bool:
    file = Path(model)
    return names_function(model) or (file.is_file() and recognise(file) is Format.STABLEHLO)


def _named(name: str) -> Sink:
    found = next((sink for sink in TABLE if sink.name == name), None)
    if found is None:
        raise SplitError(f"no sink {name!r}{nearest(name, SINKS)} Sinks: {', '.join(SINKS)}")
    return found


def _check_same(plan: Placed, back: Split) -> None:
    """Refuse a text that, read back, says something else: the plan is finer than the notation."""
    differs = np.flatnonzero(plan.fixed & (back.device != plan.device)).tolist()
    wrong = [node for node in differs if back.device[node] not in plan.replicas.get(node, ())]
    if not wrong:
        return
    node = wrong[0]
    cure = f"plan it so with go-rl optimize ... --for {plan.sink}" if plan.sink in JOINED else (
        f"use a sink that names nodes: {plan.naming_nodes}"
    )  # fmt: skip
    raise plan.error(
        f"cannot say this plan, whose parts are finer: {counted(len(wrong), 'node')} would "
        f"move, such as {plan.graph.names[node]!r} from device {plan.device[node]} to "
        f"{back.device[node]}; {cure}"
    )
