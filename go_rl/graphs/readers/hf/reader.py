"""``config.json`` of Hugging Face transformers as `OpGraph`: no weights, no network, no PyTorch."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path

from go_rl.core.errors import ReadError, nearest
from go_rl.core.graph.element_type import element_type
from go_rl.core.graph.op_graph import OpGraph
from go_rl.graphs.readers.cost import Tensor
from go_rl.graphs.readers.hf.build import NetworkFile, build_graph
from go_rl.graphs.readers.hf.families.known import FAMILIES
from go_rl.graphs.readers.hf.model_config import ModelConfig, read_fields
from go_rl.graphs.readers.hf.resolve import torch_dtype
from go_rl.graphs.readers.hf.stored.quantisation import Quantisation, quantisation
from go_rl.graphs.readers.hf.stored.safetensors import check_stored
from go_rl.graphs.readers.hf.vision.images import PROJECTOR
from go_rl.graphs.readers.hf.vision.multimodal import MULTIMODAL, TEXTS, multimodal


def read_hf(path: str | Path, dims: Mapping[str, int] | None = None) -> OpGraph:
    """Read the configuration at ``path``.

    Args:
        path: a ``config.json``; headers of safetensors in its folder are checked against it.
        dims: ``batch`` sequences (1), ``sequence`` new tokens of each (the model's limit, at most
            2048; with a cache 1), ``cache`` earlier tokens whose keys and values are there (none:
            prefill), ``source`` tokens of T5's encoder (as ``sequence``), ``images`` of each
            sequence, whose tokens are among the new ones (1; with a cache none), ``height`` and
            ``width`` of an image in pixels, where the model takes any (448).

    Raises:
        ReadError: an unknown family, a field missing or wrong, dims that the model does not have,
            or safetensors of another model; the message names file and field.
    """
    path, notes = Path(path), []
    whole = ModelConfig(str(path), read_fields(path), {})
    kind = _recognised(whole)
    parts = multimodal(kind, whole.where, whole.fields, notes) if kind in MULTIMODAL else None
    family = parts.language if parts else FAMILIES[kind]
    config = parts.text if parts else replace(whole, aliases=family.fields)
    has_type = whole.has("torch_dtype") or whole.has("dtype")
    name, itemsize = torch_dtype(whole if has_type else config)
    if not (has_type or config.has("torch_dtype") or config.has("dtype")):
        notes.append("float32: the configuration has no torch_dtype")
    if further := config.count("num_nextn_predict_layers", 0, 0):
        notes.append(
            f"num_nextn_predict_layers: {further} more layers, which predict further tokens, are "
            "not in the graph"
        )
    title = path.parent.name if path.stem == "config" and path.parent.name else path.stem
    seeing = (parts.tower.names.root.partition(".")[0], PROJECTOR) if parts else ()
    quantised = quantisation(whole, family.names, itemsize, seeing)
    check = partial(_check, path.parent, name, quantised)
    if quantised is not None:
        notes.append(f"matrices are stored as {quantised.title}; operators compute in {name}")
    stored = quantised.element_bytes if quantised else None
    source = NetworkFile(
        "huggingface", title, config, family, itemsize, element_type(name), check, stored, parts
    )
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


def _recognised(whole: ModelConfig) -> str:
    """Return the family that a configuration names."""
    kind, known = whole.fields.get("model_type"), (*FAMILIES, *MULTIMODAL)
    if not isinstance(kind, str):
        raise ReadError(f"{whole.where}: model_type is {kind!r}; it must name a family of models")
    if kind in known:
        return kind
    field = next((each for each in TEXTS if _names_family(whole.fields.get(each))), None)
    part = f" Its {field} is read, in a file of its own." if field else ""
    raise ReadError(
        f"{whole.where}: model_type {kind!r} is not read{nearest(kind, known)} Known are "
        f"{', '.join(known)}.{part}"
    )


def _names_family(part: object) -> bool:
    kind = part.get("model_type") if isinstance(part, dict) else None
    return isinstance(kind, str) and kind in FAMILIES
