"""A tiny transformer by its configuration, and a small ONNX model in layers."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from go_rl.api.options import JudgeOptions, options_from
from go_rl.api.problem import problem_for
from go_rl.core import Hardware, OpGraph, Problem, load_hardware
from go_rl.graphs.readers import load
from go_rl.plans.splits import read_split
from go_rl.plans.splits.split import Split

CONFIG = {
    "model_type": "llama", "hidden_size": 64, "num_hidden_layers": 4, "num_attention_heads": 4,
    "num_key_value_heads": 2, "intermediate_size": 128, "vocab_size": 96,
    "max_position_embeddings": 64, "hidden_act": "silu", "torch_dtype": "float32",
}  # fmt: skip
WIDTH = 8


def llama_file(folder: Path, layers: int = 4, **fields: Any) -> Path:
    """``config.json`` of a Llama of so many layers, named tiny."""
    path = folder / "tiny" / "config.json"
    path.parent.mkdir(exist_ok=True)
    path.write_text(json.dumps(CONFIG | {"num_hidden_layers": layers} | fields))
    return path


def llama(folder: Path, layers: int = 4, **fields: Any) -> OpGraph:
    return load(llama_file(folder, layers, **fields), {"sequence": 16})


def posed(graph: OpGraph, hardware: str, objective: str = "ring", memory: bool = False) -> Problem:
    given = {"hardware": hardware, "objective": objective, "memory": memory, "cost": "analytical"}
    return problem_for(graph, options_from(JudgeOptions, given, "posed"))


def small_ring(memory_bytes: float) -> Hardware:
    """A ring of four chips with so much memory each."""
    ring = load_hardware("ring4")
    return replace(
        ring, devices=tuple(replace(chip, memory_bytes=memory_bytes) for chip in ring.devices)
    )


def split_of(problem: Problem, source: str | Path, notation: str | None = None) -> Split:
    return read_split(source, problem.graph, problem.hardware, notation)


def devices_of(problem: Problem, source: str | Path, notation: str | None = None) -> dict[Any, int]:
    """The device of each node, by its name."""
    split = split_of(problem, source, notation)
    return dict(zip(problem.graph.names, split.device.tolist(), strict=True))


def onnx_file(folder: Path, layers: int = 4, name: str = "tower.onnx") -> Path:
    """Layers of a product and an activation, named as exporters name them, and a head."""
    nodes, weights, x = [], [], "x"
    for i in range(layers):
        weight = f"w{i}"
        weights.append(numpy_helper.from_array(np.eye(WIDTH, dtype=np.float32), weight))
        place = f"/layers.{i}"
        nodes += [
            helper.make_node("MatMul", [x, weight], [f"p{i}"], name=f"{place}/fc/MatMul"),
            helper.make_node("Relu", [f"p{i}"], [f"r{i}"], name=f"{place}/act/Relu"),
        ]
        x = f"r{i}"
    nodes.append(helper.make_node("Softmax", [x], ["y"], name="/head/Softmax"))
    shape = helper.make_tensor_type_proto(TensorProto.FLOAT, [4, WIDTH])
    graph = helper.make_graph(
        nodes, "tower", [onnx.ValueInfoProto(name="x", type=shape)],
        [onnx.ValueInfoProto(name="y", type=shape)], weights,
    )  # fmt: skip
    path = folder / name
    opset = [helper.make_opsetid("", 21)]
    onnx.save(helper.make_model(graph, opset_imports=opset, ir_version=10), path)
    return path
