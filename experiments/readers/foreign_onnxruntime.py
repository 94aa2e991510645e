"""Files that ONNX Runtime writes from other models: quantised, optimised, in half precision.

Each is made from a model of `foreign_keras` or `foreign_transformers`, which must be there before.
"""

# The generators are no dependencies: see `foreign_models.INSTALL`.
# pyright: reportMissingImports=false

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

BATCH = 2
IMAGES = ("keras_tensorflow_mobilenet", "keras_tensorflow_unet", "keras_tensorflow_resnet50")
TEXTS = ("transformers_bert_script", "transformers_gpt2_dynamo", "keras_tensorflow_lstm")
FUSED = "transformers_classic_bert_script_fused"
LEVELS = {"basic": "ORT_ENABLE_BASIC", "extended": "ORT_ENABLE_EXTENDED", "all": "ORT_ENABLE_ALL"}
OPTIMISED = (
    *IMAGES, *TEXTS, "transformers_classic_bert_script", "keras_torch_lstm",
    "keras_tensorflow_convolutions_1d",
)  # fmt: skip
QUANTISED = ("static_qdq", "static_qoperator", "_dynamic")
"""Kinds that are optimised once more, since the optimiser fuses them into integer operators."""


def _example(path: Path) -> dict[str, np.ndarray]:
    """One input by the shapes in the file, its symbolic dimensions `BATCH` long."""
    import onnx

    model = onnx.load(path)
    weights = {t.name for t in model.graph.initializer}
    found: dict[str, np.ndarray] = {}
    for value in model.graph.input:
        if value.name in weights:
            continue
        kind = value.type.tensor_type
        shape = [d.dim_value or BATCH for d in kind.shape.dim]
        dtype = onnx.helper.tensor_dtype_to_np_dtype(kind.elem_type)
        rng = np.random.default_rng(0)
        random = rng.standard_normal(shape).astype(dtype)
        found[value.name] = random if dtype == np.float32 else np.ones(shape, dtype)
    return found


def _dynamic(source: Path, path: Path) -> None:
    import onnx
    from onnxruntime.quantization import quantize_dynamic

    # Fused operators have no shapes that the quantiser can infer.
    quantize_dynamic(source, path, extra_options={"DefaultTensorType": onnx.TensorProto.FLOAT})


def _static(operators: bool, source: Path, path: Path) -> None:
    from onnxruntime.quantization import CalibrationDataReader, QuantFormat, quantize_static
    from onnxruntime.quantization.shape_inference import quant_pre_process

    class OneExample(CalibrationDataReader):
        """Calibrates on one random input."""

        def __init__(self) -> None:
            self.left = [_example(source)]

        def get_next(self) -> Any:
            return self.left.pop() if self.left else None

    prepared = path.with_suffix(".prepared")
    quant_pre_process(source, prepared, skip_symbolic_shape=True)
    kind = QuantFormat.QOperator if operators else QuantFormat.QDQ
    quantize_static(prepared, path, OneExample(), quant_format=kind)
    prepared.unlink()


def _optimised(level: str, source: Path, path: Path) -> None:
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = getattr(onnxruntime.GraphOptimizationLevel, LEVELS[level])
    options.optimized_model_filepath = str(path)
    onnxruntime.InferenceSession(source, options, providers=["CPUExecutionProvider"])


def _half(source: Path, path: Path) -> None:
    import onnx
    from onnxruntime.transformers.float16 import convert_float_to_float16

    onnx.save(convert_float_to_float16(onnx.load(source), disable_shape_infer=True), path)


def _four_bits(source: Path, path: Path) -> None:
    import onnx
    from onnxruntime.quantization.matmul_nbits_quantizer import MatMulNBitsQuantizer

    quantiser = MatMulNBitsQuantizer(onnx.load(source), block_size=32, is_symmetric=True)
    quantiser.process()
    quantiser.model.save_model_to_file(str(path))  # pyright: ignore[reportAttributeAccessIssue]


def _write_from(source: str, make: Callable[[Path, Path], None], path: Path) -> None:
    given = path.parent / f"{source}.onnx"
    if not given.exists():
        raise FileNotFoundError(f"{given} must be made first")
    make(given, path)


KINDS: dict[str, tuple[str, Callable[[Path, Path], None], tuple[str, ...]]] = {
    "dynamic": ("dynamic quantisation", _dynamic, (*IMAGES[:2], *TEXTS, FUSED)),
    "static_qdq": ("static QDQ", partial(_static, False), (*IMAGES, *TEXTS)),
    "static_qoperator": ("static QOperator", partial(_static, True), (*IMAGES, *TEXTS)),
    "half": ("half precision", _half, (*IMAGES[:2], *TEXTS)),
    "four_bits": ("4-bit weights", _four_bits, TEXTS[:2]),
    **{lv: (f"optimised, {lv}", partial(_optimised, lv), OPTIMISED) for lv in LEVELS},
}
"""Names of each kind of file, programs that write it, and their models."""


def makers() -> dict[str, tuple[str, str, Callable[[Path], None]]]:
    """Return by name the kind of each model, its source, and what writes its file; files that
    others need come first. What is made of a fused model is compared with what was fused."""
    made: dict[str, tuple[str, str, Callable[[Path], None]]] = {}

    def add(end: str, kind: str, base: str, make: Callable[[Path, Path], None]) -> None:
        source, write = base.partition("_fused")[0], partial(_write_from, base, make)
        made[f"{base}_{end}"] = kind, source, write

    for end, (kind, make, bases) in KINDS.items():
        for base in bases:
            add(end, kind, base, make)
    for name in [name for name in made if name.endswith(QUANTISED)]:
        add("all", f"{made[name][0]}, optimised", name, KINDS["all"][1])
    return made
