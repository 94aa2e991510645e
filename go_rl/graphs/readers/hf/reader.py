"""``config.json`` of Hugging Face transformers as `OpGraph`: no weights, no network, no PyTorch."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from go_rl.core.errors import ReadError, nearest
from go_rl.core.graph.op_graph import OpGraph
from go_rl.graphs.readers.file_errors import naming
from go_rl.graphs.readers.graph_builder import GraphBuilder
from go_rl.graphs.readers.hf.families import FAMILIES
from go_rl.graphs.readers.hf.family import Family
from go_rl.graphs.readers.hf.model_config import ModelConfig, read_fields
from go_rl.graphs.readers.hf.network import Network
from go_rl.graphs.readers.hf.networks import Reading, add_network
from go_rl.graphs.readers.hf.resolve import element_type
from go_rl.graphs.readers.hf.safetensors import check_stored
from go_rl.graphs.readers.hf.sizes import Tokens

LONGEST_DEFAULT = 2048
"""Tokens of a sequence where neither the user nor the model's limit says fewer."""
LARGEST_DIM = 1 << 30
DIMS: Mapping[str, tuple[str, ...]] = {
    "decoder": ("batch", "sequence", "cache"),
    "encoder": ("batch", "sequence"),
    "encoder-decoder": ("batch", "sequence", "source", "cache"),
    "image": ("batch",),
    "speech": ("batch", "sequence", "cache"),
}
"""Dims of each kind of network."""


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
    notes: list[str] = []
    sizes = _sizes(config, family, dict(dims or {}), notes)
    name, itemsize = element_type(config)
    if not (config.has("torch_dtype") or config.has("dtype")):
        notes.append("float32: the configuration has no torch_dtype")
    meta = {"format": "huggingface", "dims": sizes, "notes": notes}
    title = path.parent.name if path.stem == "config" and path.parent.name else path.stem
    net = Network(GraphBuilder(title, meta), itemsize, str(path))
    source = sizes.get("source", 0)
    if family.kind == "speech":
        source = config.count("max_source_positions", 1500, most=1 << 20)
    tokens = Tokens(sizes["batch"], sizes.get("sequence", 1), sizes.get("cache", 0))
    with naming(path):
        result = add_network(Reading(net, config, family, tokens, source))
        notes += check_stored(path.parent, net.stored, name, bool(tokens.cache))
        assert result.producer is not None
        last = net.builder.node(result.producer)
        net.builder.replace_node(result.producer, replace(last, is_output=True))
        return net.builder.build()


def _recognised(path: Path) -> tuple[ModelConfig, Family]:
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


def _sizes(
    config: ModelConfig, family: Family, given: dict[str, int], notes: list[str]
) -> dict[str, int]:
    """Return the value of each dim; ``notes`` gets a sentence for those that were not given."""
    known = DIMS[family.kind]
    for name, size in given.items():
        if name not in known:
            raise ReadError(
                f"{config.where}: no dimension {name!r}{nearest(name, known)} It has "
                f"{', '.join(known)}"
            )
        if size > LARGEST_DIM:
            raise ReadError(f"{config.where}: dimension {name!r} is {size}, more than 2^30")
    sizes = {"batch": 1, **given}
    if "sequence" in known:
        sizes.setdefault("sequence", 1 if "cache" in given else _longest(config, family))
    if "source" in known:
        sizes.setdefault("source", max(sizes["sequence"], given.get("cache", 0)))
    chosen = {k: v for k, v in sizes.items() if k not in given}
    if chosen:
        listed = ", ".join(f"{k}={v}" for k, v in chosen.items())
        notes.append(f"dims that were not given: {listed}")
    longest = sizes.get("sequence", 0) + sizes.get("cache", 0)
    if family.positions == "rotary" and longest > config.count("max_position_embeddings", longest):
        notes.append(f"{longest} tokens a sequence, more than max_position_embeddings")
    if given.get("cache"):
        notes.append(
            "decode: keys and values of earlier tokens stay on their devices, as weights do"
        )
        if family.encoder is not None:
            notes.append("decode: the encoder has run; the graph is the decoder")
    return sizes


def _longest(config: ModelConfig, family: Family) -> int:
    if family.positions == "relative" and not config.has("max_position_embeddings"):
        return 512
    limit = config.count("max_position_embeddings") - family.reserved
    return max(1, min(limit, LONGEST_DEFAULT))
