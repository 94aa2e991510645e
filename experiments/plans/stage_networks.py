"""`NETWORKS`: ONNX models whose stages are held against the whole, by who wrote them."""

from __future__ import annotations

import gzip
import shutil
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import onnx
from onnx import numpy_helper

from experiments.experiment import RESULTS
from experiments.plans import exported_networks, written_models
from experiments.readers import foreign_models
from experiments.readers.foreign_onnxruntime import KINDS
from experiments.readers.resnet50 import write_resnet50_onnx
from go_rl.core import GoRLError

LIGHT = Path(onnx.__file__).parent / "backend" / "test" / "data" / "light"
PACKED = RESULTS / "h200" / "networks"
"""Networks without weights, which are drawn."""
WIDTH = 0.02
"""Deviation of random weights."""
LARGEST = 600e6
"""Bytes of weights of the largest network that is run."""
DERIVED = {
    "unet": ("dynamic", "static_qdq", "static_qoperator", "all"),
    "vit": ("dynamic", "static_qdq", "four_bits"),
    "bidirectional lstm": ("dynamic",),
    "torchvision mobilenet-v3-small": ("static_qdq", "static_qoperator"),
    "gpt2 with cache": ("dynamic", "half"),
}
"""Files that ONNX Runtime makes of exported networks, by their kinds."""
FOREIGN = (
    *("mlp_classifier", "random_forest_classifier", "gaussian_process", "svc_rbf", "k_means"),
    *("scaled_pipeline", "gradient_boosting_regressor", "voting"),
    *("transformers_bert_script", "transformers_classic_bert_script"),
    *("transformers_classic_bert_script_fused", "transformers_classic_bert_script_fused_half"),
    *(f"transformers_bert_script_{kind}" for kind in ("half", "static_qdq", "four_bits", "all")),
    *("keras_torch_lstm", "keras_torch_unet", "keras_torch_mobilenet", "keras_torch_gru"),
)
"""Models of scikit-learn, of PyTorch's older exporter, of Keras, and of ONNX Runtime."""
Made = Callable[[Path], object]
"""Writes a network; what it is derived from is kept in the same folder."""


def small_networks() -> Iterator[tuple[str, Made]]:
    """Yield networks that run in a moment, by name."""
    for name in exported_networks.NETWORKS:
        yield name, partial(exported_networks.write_exported, name)
    yield from written_models.CONTROL.items()
    for name, kinds in DERIVED.items():
        for kind in kinds:
            yield f"{name}, {kind.replace('_', ' ')}", partial(_derived, name, KINDS[kind][0])
    makers = foreign_models.all_makers()
    for name in FOREIGN:
        yield name, makers[name]
    yield "vit, weights in another file", partial(_derived, "vit", _apart)


def large_networks() -> Iterator[tuple[str, Made]]:
    """Yield onnx's light models, ResNet-50 of the zoo, and networks of published sizes."""
    for path in sorted(LIGHT.glob("*.onnx")):
        yield path.stem, partial(shutil.copyfile, path)
    packed = {p.name.removesuffix(".onnx.gz"): p for p in sorted(PACKED.glob("*.onnx.gz"))}
    for name, path in packed.items():
        yield name, partial(_filled, path)
    yield "resnet50", write_resnet50_onnx
    for name, path in packed.items():
        yield f"{name}, dynamic int8", partial(_dynamic, path)


def _derived(source: str, make: Callable[[Path, Path], None], target: Path) -> None:
    given = target.with_name(f"{source}.onnx")
    if not given.exists():
        exported_networks.write_exported(source, given)
    make(given, target)


def _apart(source: Path, target: Path) -> None:
    """Write a model whose weights lie in another file."""
    onnx.save(
        onnx.load(source), str(target), save_as_external_data=True, location=f"{target.name}.data"
    )


def _filled(packed: Path, target: Path) -> None:
    """Write a network whose weights are drawn."""
    model = onnx.load_model_from_string(gzip.decompress(packed.read_bytes()))
    rng = np.random.default_rng(0)
    total = sum(np.prod(t.dims) for t in model.graph.initializer) * 4
    if total > LARGEST:
        raise GoRLError(f"{total / 1e6:.0f} MB of weights, more than {LARGEST / 1e6:.0f}")
    for tensor in model.graph.initializer:
        if not tensor.raw_data and not tensor.ListFields()[-1][0].name.endswith("_data"):
            dtype = onnx.helper.tensor_dtype_to_np_dtype(tensor.data_type)
            drawn = (WIDTH * rng.standard_normal(tuple(tensor.dims))).astype(dtype)
            if "var" in tensor.name:
                drawn = np.abs(drawn) + 1
            tensor.CopyFrom(numpy_helper.from_array(drawn, tensor.name))
    onnx.save(model, str(target))


def _dynamic(packed: Path, target: Path) -> None:
    """Write a network whose products are quantised while they run."""
    with TemporaryDirectory() as folder:
        whole = Path(folder) / "whole.onnx"
        _filled(packed, whole)
        KINDS["dynamic"][0](whole, target)
