"""``config.json`` of Hugging Face transformers as `OpGraph`: no weights, no network, no PyTorch."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from pathlib import Path

from go_rl.core.errors import ReadError, nearest
from go_rl.core.graph.op_graph import OpGraph
from go_rl.graphs.readers.hf.build import NetworkFile, build_graph
from go_rl.graphs.readers.hf.families import FAMILIES
from go_rl.graphs.readers.hf.family import TransformerFamily
from go_rl.graphs.readers.hf.model_config import ModelConfig, read_fields
from go_rl.graphs.readers.hf.quantisation import Quantisation, quantisation
from go_rl.graphs.readers.hf.resolve import element_type
from go_rl.graphs.readers.hf.safetensors import check_stored
from go_rl.graphs.readers.tensor import Tensor


def read_hf(path: str | Path, dims: Mapping[str, int] | None = None) -> OpGraph:
    """Read the configuration at ``path``.

    Args:
        path: a ``config.json``; headers of safetensors in its folder are checked against it.
        dims: ``batch`` sequences (1), ``sequence`` new tokens of each (the model's limit, at most
            2048; with a cache 1), ``cache`` earlier tokens whose keys and values are there (none:
            prefill), ``source`` tokens of T5's encoder (as ``sequence``).

    Raises:
        ReadError: an unknown family, a field missing or wrong, dims that the model does not have,
            or safetensors of another model; the message names file and field.
    """
    path = Path(path)
    config, family = _recognised(path)
    name, itemsize = element_type(config)
    notes = []
    if not (config.has("torch_dtype") or config.has("dtype")):
        notes.append("float32: the configuration has no torch_dtype")
    if further := config.count("num_nextn_predict_layers", 0, 0):
        notes.append(
            f"num_nextn_predict_layers: {further}, which predict further tokens in training, are "
            "not in the graph"
        )
    title = path.parent.name if path.stem == "config" and path.parent.name else path.stem
    quantised = quantisation(config, family.names, itemsize)
    check = partial(_check, path.parent, name, quantised)
    if quantised is not None:
        notes.append(f"matrices are stored as {quantised.title}; operators compute in {name}")
    stored = quantised.element_bytes if quantised else None
    source = NetworkFile("huggingface", title, config, family, itemsize, check, stored)
    return build_graph(source, dims or {}, notes)


def _check(
    folder: Path,
    element: str,
    quantised: Quantisation | None,
    arrays: Mapping[str, Tensor],
    is_part: bool,
) -> list[str]:
    """Compare arrays with headers of safetensors, but for those whose stored form is another."""
    if quantised is None:
        return check_stored(folder, element, arrays, is_part)
    plain = {name: t for name, t in arrays.items() if not quantised.holds(name, t.shape)}
    return check_stored(folder, element, plain, True)


def _recognised(path: Path) -> tuple[ModelConfig, TransformerFamily]:
    fields = read_fields(path)
    kind = fields.get("model_type")
    if not isinstance(kind, str):
        raise ReadError(f"{path}: model_type is {kind!r}; it must name a family of models")
    if kind not in FAMILIES:
        raise ReadError(
            f"{path}: model_type {kind!r} is not read{nearest(kind, FAMILIES)} Known are "
            f"{', '.join(FAMILIES)}"
        )
    family = FAMILIES[kind]
    return ModelConfig(str(path), fields, family.fields), family
