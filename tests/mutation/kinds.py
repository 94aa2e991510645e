"""Kinds of files that users hand to go_rl: seeds, their mutants, and what reads them."""

import json
import tempfile
import zlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path
from typing import Any

import numpy as np
from graphs.readers.gguf_files import DEEPSEEK, METADATA, content, deepseek_tensors, tensors
from graphs.readers.hf_models import SMALL, SMALL_PARTS, SMALL_QUANTISED
from graphs.readers.tflite_models import T, tflite

from .mutate_json import mutate_json
from .mutate_npz import MANIFEST, Arrays, edit_manifest, mutate_npz
from .mutate_onnx import mutate_onnx
from .mutate_pt2 import PT2_DIMS, mutate_pt2, pt2_seeds
from .mutate_text import mutate_text
from .onnx_seeds import DIMS, MODELS
from .values import Rng, broken_bytes, extreme, integer, pick

TEXTS = Path(__file__).parent / "texts"
PIPEDREAM = """\
node1 -- Input0 -- forward_compute_time=0.000, backward_compute_time=0.000, activation_size=0.0, parameter_size=0.000
node2 -- Conv2d(3, 64, kernel_size=(7, 7)) -- forward_compute_time=4.1, backward_compute_time=6.2, activation_size=[1024.0; 64.0], parameter_size=37632.000
node3 -- ReLU(inplace) -- forward_compute_time=0.9, backward_compute_time=1.3, activation_size=1024.0, parameter_size=0.000
node4 -- Linear(in_features=64) -- forward_compute_time=1.9, backward_compute_time=2.3, activation_size=40.0, parameter_size=2560.000
\tnode1 -- node2
\tnode2 -- node3
\tnode2 -- node4
\tnode3 -- node4
"""  # noqa: E501 - the format has one line a node

DOPPLER = """\
6
0, 1,
0, 0, 1, 2,
1, 2, 3, 3,
1000,4000,einsummable
8,32,formation
8,32,select
1000,4000
"""


@dataclass(frozen=True)
class Kind:
    """One kind of file."""

    suffix: str
    mutate: Callable[[Rng], bytes]
    """A random mutant."""
    read: Callable[[Path], Any]
    """What a user's command does with the file; raises a `GoRLError` or returns."""


@cache
def _onnx_seeds() -> tuple[Any, ...]:
    return tuple(make() for make in MODELS)


def _read_model(path: Path, **settings: Any) -> Any:
    from go_rl.graphs.readers import load

    return load(path, **settings)


def _sized(dims: Mapping[str, int], *refusals: str, **settings: Any) -> Callable[[Path], Any]:
    """Read with the sizes that seeds need, and without them where a model has no such name."""

    def read(path: Path) -> Any:
        from go_rl.core import GoRLError

        try:
            return _read_model(path, dims=dims, **settings)
        except GoRLError as error:
            if not any(words in str(error) for words in refusals):
                raise
            return _read_model(path, unknown="bytes", **settings)

    return read


def _text(*files: str) -> Callable[[Rng], bytes]:
    return lambda rng: mutate_text((TEXTS / pick(rng, files)).read_text(), rng)


def _profile() -> dict[str, Any]:
    """A profile in dnn-partitioning's form."""
    nodes = [
        {"id": i, "name": name, "supportedOnFpga": 1, "cpuLatency": 2.5 * i, "fpgaLatency": 0.5 * i,
         "isBackwardNode": i > 2, "size": 1024.0 * i, "colorClass": i % 2}
        for i, name in enumerate(("input", "MatMul_1", "Relu_2", "MatMul_1_Grad/Mul"))
    ]  # fmt: skip
    edges = [
        {"sourceId": u, "destId": v, "cost": 0.25, "size": 64.0}
        for u, v in ((0, 1), (1, 2), (1, 3), (2, 3))
    ]
    limits = {"maxSizePerFPGA": 1e9, "maxFPGAs": 2, "maxCPUs": 1}
    return {**limits, "nodes": nodes, "edges": edges}


@cache
def _tflite() -> bytes:
    """A convolution, a weight of half precision, a product and a custom operator."""
    tensors = {
        "x": T((1, 8, 8, 3), signature=(-1, 8, 8, 3)), "k": T((4, 3, 3, 3), stored=True),
        "b": T((4,), stored=True), "c": T((1, 8, 8, 4)), "half": T((10, 256), 1, True),
        "w": T((10, 256)), "f": T((1, 256)), "y": T((1, 10)), "z": T((1, 10)),
    }  # fmt: skip
    sizes = {1: ("int", 1), 2: ("int", 1), 3: ("byte", 1)}
    operators = [
        ("CONV_2D", ["x", "k", "b"], ["c"], sizes), ("RESHAPE", ["c"], ["f"], {}),
        ("DEQUANTIZE", ["half"], ["w"], {}),
        ("FULLY_CONNECTED", ["f", "w", None], ["y"], {0: ("byte", 1)}),
        ("OwnOperator", ["y"], ["z"], {}),
    ]  # fmt: skip
    return tflite(tensors, operators, ["x"], ["z"])


def _piper() -> dict[str, Any]:
    """A profile in Piper's form."""
    figures = {"parameterSize": 8.0, "memoryUsageA": 4.0, "memoryUsageB": 16.0, "syncTimeFw": {},
               "syncTimeBw": {}}  # fmt: skip
    ways = [{"id": name, "timePerSample": 1.5, **figures} for name in ("vanilla", "recomp")]
    nodes = [{"id": i, "name": f"layer{i}", "TMPCs": {"1": ways, "2": ways}} for i in range(4)]
    edges = [{"sourceId": u, "destId": u + 1, "communicationCost": 64.0} for u in range(3)]
    limits = {"maxMemoryPerDevice": 1e9, "maxDevices": 2, "bandwidth": 1e9, "mbsInBatch": 4}
    return {**limits, "nodes": nodes, "edges": edges}


def _hardware(rng: Rng) -> bytes:
    from go_rl.core import load_hardware

    return mutate_json(load_hardware(pick(rng, ("ring36", "a100x8", "p100x4"))).to_json(), rng)


def _read_hardware(path: Path) -> Any:
    from go_rl.core import load_hardware

    return load_hardware(path)


@cache
def _graph() -> Any:
    """The graph of every archive and plan: small, with all that a graph may have."""
    from go_rl.core import Geometry, OpKind
    from go_rl.graphs.readers.graph_builder import GraphBuilder, Node

    builder = GraphBuilder("seed", {"format": "onnx", "dims": {"batch": 2}, "notes": ["a note"]})
    for i, name in enumerate(("x", "conv", "relu", 7, "out")):
        builder.add_node(
            Node(
                name, "Op", OpKind.INPUT if i == 0 else OpKind.MATMUL, flops=1e6 * i,
                bytes_accessed=2e5, output_bytes=1e5, weight_bytes=1e4 * i, output_itemsize=4.0,
                weight_itemsize=4.0, output_shape=(2, 3 + i), is_output=i == 4, source=f"line {i}",
                colocation=0 if i in (1, 2) else -1, seconds={"accelerator": 1e-3 * i},
                transfer_seconds=1e-4, geometry=Geometry(),
            )
        )  # fmt: skip
    for u, v in ((0, 1), (1, 2), (2, 3), (1, 4), (3, 4)):
        builder.add_edge(u, v, 1e5)
    return builder.build()


@cache
def _archive() -> bytes:
    from go_rl.graphs.readers import save_graph

    with tempfile.TemporaryDirectory() as folder:
        save_graph(_graph(), Path(folder) / "g.npz")
        return (Path(folder) / "g.npz").read_bytes()


def _seal_graph(arrays: Arrays) -> None:
    from go_rl.graphs.readers.archive import _graph as graph_of

    def write(manifest: dict) -> None:
        content = {name: array for name, array in arrays.items() if name != MANIFEST}
        manifest["digest"] = graph_of(manifest, content).digest

    edit_manifest(arrays, write)


def _plan() -> dict[str, Any]:
    """A legal plan of `_graph` in its document's form, as `record_plan` wrote it."""
    return json.loads((TEXTS / "plan.json").read_text())


def record_plan() -> None:
    """Write the plan anew, when the layout of plans has changed: ``python -m mutation``."""
    from go_rl import optimize

    result = optimize(
        _graph(), hardware="ring6", objective="ring", method="greedy", samples=1, cost="analytical"
    )
    (TEXTS / "plan.json").write_text(json.dumps(result.best.to_json()) + "\n")


def _read_plan(path: Path) -> Any:
    from go_rl import check

    return check(path, _graph())


@cache
def _weights() -> bytes:
    from go_rl.policy.agent import new_agent
    from go_rl.policy.config import RingPolicyConfig
    from go_rl.policy.weights import Weights, save_weights

    config = RingPolicyConfig(
        hidden=8, sage_layers=2, attention_layers=1, heads=2, segment=16, decoder_width=8
    )
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "w.npz"
        save_weights(Weights(new_agent(config, 0), "tiny", {"graphs": 1}), path)
        return path.read_bytes()


def _seal_weights(arrays: Arrays) -> None:
    from go_rl.runtime.array_file import DIGEST, digest_of

    content = {name: array for name, array in arrays.items() if name != MANIFEST}
    edit_manifest(arrays, lambda manifest: manifest.update({DIGEST: digest_of(content)}))


def _read_weights(path: Path) -> Any:
    from go_rl.policy.weights import load_weights

    return load_weights(path)


BYTECODE = ("module.bc", "portable.bc", "exported.jax")
"""Bytecode of MLIR, a portable artifact, and an export of JAX with a symbolic size."""


def record_bytecode() -> None:
    """Write `BYTECODE` anew: ``python -m mutation``.

    A process that has used MLIR cannot serve the forks in which mutants are tried.
    """
    import jax
    from jax import export
    from jax._src.interpreters import mlir
    from jaxlib.mlir import ir
    from jaxlib.mlir.dialects import stablehlo

    with mlir.make_ir_context() as context:
        module: Any = ir.Module.parse((TEXTS / "module.mlir").read_text(), context)
        plain = mlir.module_to_bytecode(module)
        oldest = stablehlo.get_minimum_version()
        portable = stablehlo.serialize_portable_artifact(module, oldest)
    (b,) = export.symbolic_shape("b")
    sizes = jax.ShapeDtypeStruct((b, 4), np.float32)
    exported = export.export(jax.jit(lambda x: jax.numpy.tanh(x @ x.T)))(sizes).serialize()
    for name, data in zip(BYTECODE, (plain, portable, bytes(exported)), strict=True):
        (TEXTS / name).write_bytes(data)


def _gguf(rng: Rng) -> bytes:
    """Other numbers in the header, and other bytes."""
    plain = METADATA, tensors(pick(rng, (0, 4)))
    fields, arrays = pick(rng, (plain, (DEEPSEEK, deepseek_tensors(True))))
    metadata = dict(fields)
    for _ in range(int(rng.integers(3))):
        name = pick(rng, sorted(n for n, v in metadata.items() if isinstance(v, int)))
        metadata[name] = integer(rng, metadata[name]) % (1 << 32)
        array = pick(rng, sorted(arrays))
        shape, kind = arrays[array]
        sizes = [integer(rng, n) % (1 << 64) if rng.random() < 0.5 else n for n in shape]
        arrays[array] = (tuple(sizes), kind if rng.random() < 0.7 else int(rng.integers(45)))
    data = content(metadata, arrays)
    return broken_bytes(data, rng) if rng.random() < 0.5 else data


EXTRA = (
    "architectures", "attention_bias", "dtype", "head_dim", "hidden_act", "id2label",
    "layer_types", "mlp_only_layers", "moe_layer_freq", "partial_rotary_factor", "rotary_pct",
    "sliding_window", "sliding_window_pattern", "tie_word_embeddings", "use_parallel_residual",
    "use_sliding_window",
)  # fmt: skip
"""Fields that a configuration may have besides those of its seed."""


def _configuration(rng: Rng) -> bytes:
    """Of every family; of some the text and the tower, or quantised, or with another field."""
    from go_rl.graphs.readers.hf.families.known import FAMILIES
    from go_rl.graphs.readers.hf.vision.multimodal import MULTIMODAL

    kind = pick(rng, [*FAMILIES, *MULTIMODAL])
    fields = {"model_type": kind, **SMALL, **(SMALL_PARTS if kind in MULTIMODAL else {})}
    if rng.random() < 0.3:
        fields["quantization_config"] = pick(rng, SMALL_QUANTISED)
    if rng.random() < 0.5:
        fields[pick(rng, EXTRA)] = extreme(rng)
    return mutate_json(fields, rng)


KINDS: Mapping[str, Kind] = {
    "onnx": Kind(
        ".onnx",
        lambda r: mutate_onnx(pick(r, _onnx_seeds()), r),
        _sized(DIMS, "no dimension", "no symbolic dimensions"),
    ),
    "torch": Kind(
        ".pt2",
        lambda r: mutate_pt2(pick(r, pt2_seeds()), r),
        _sized(PT2_DIMS, "no dimension", trip_count=3),
    ),
    "configuration": Kind(".json", _configuration, _read_model),
    "gguf": Kind(".gguf", _gguf, _read_model),
    "hlo": Kind(".txt", _text("module.hlo", "compiled.hlo"), _read_model),
    "stablehlo": Kind(".mlir", _text("module.mlir"), _read_model),
    "bytecode": Kind(
        ".mlir.bc",
        lambda r: broken_bytes((TEXTS / pick(r, BYTECODE)).read_bytes(), r),
        _sized({"b": 3}, "cannot be set"),
    ),
    "dnn-partitioning": Kind(".json", lambda r: mutate_json(_profile(), r), _read_model),
    "tflite": Kind(
        ".tflite", lambda r: broken_bytes(_tflite(), r), partial(_read_model, unknown="bytes")
    ),
    "piper": Kind(".json", lambda r: mutate_json(_piper(), r), _read_model),
    "doppler": Kind(".txt", lambda r: mutate_text(DOPPLER, r), _read_model),
    "pipedream": Kind(".txt", lambda r: mutate_text(PIPEDREAM, r), _read_model),
    "hardware": Kind(".json", _hardware, _read_hardware),
    "archive": Kind(".npz", lambda r: mutate_npz(_archive(), r, _seal_graph), _read_model),
    "plan": Kind(".json", lambda r: mutate_json(_plan(), r), _read_plan),
    "weights": Kind(".npz", lambda r: mutate_npz(_weights(), r, _seal_weights), _read_weights),
}
"""By name."""


def mutant(kind: str, number: int) -> bytes:
    """Return mutant ``number`` of a kind: the same bytes in every process."""
    rng = np.random.default_rng((zlib.crc32(kind.encode()), number))
    return KINDS[kind].mutate(rng)
