"""`NETWORKS`: ONNX models whose stages are held against the whole, by who wrote them."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import onnx

from experiments.plans import exported_networks, written_models
from experiments.readers import foreign_models
from experiments.readers.foreign_onnxruntime import KINDS
from experiments.readers.resnet50 import write_resnet50_onnx

LIGHT = Path(onnx.__file__).parent / "backend" / "test" / "data" / "light"
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
            yield f"{name}, {kind.replace('_', ' ')}", partial(_derived, name, KINDS[kind][1])
    makers = foreign_models.all_makers()
    for name in FOREIGN:
        yield name, makers[name][-1]
    yield "vit, weights in another file", partial(_derived, "vit", _apart)


def large_networks() -> Iterator[tuple[str, Made]]:
    """Yield onnx's light models, and ResNet-50."""
    for path in sorted(LIGHT.glob("*.onnx")):
        yield path.stem, partial(shutil.copyfile, path)
    yield "resnet50", write_resnet50_onnx


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
