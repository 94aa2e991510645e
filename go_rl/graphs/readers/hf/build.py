"""Graph of a family with the sizes of a configuration, whatever file that came from."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from go_rl.core.errors import ReadError, nearest
from go_rl.core.graph.element_type import ElementType
from go_rl.core.graph.op_graph import OpGraph
from go_rl.graphs.readers.cost import Tensor
from go_rl.graphs.readers.file_errors import naming
from go_rl.graphs.readers.graph_builder import GraphBuilder
from go_rl.graphs.readers.hf.family import Tokens, TransformerFamily
from go_rl.graphs.readers.hf.model_config import ModelConfig
from go_rl.graphs.readers.hf.network import NetworkBuilder
from go_rl.graphs.readers.hf.networks import Reading, add_network
from go_rl.graphs.readers.hf.vision.images import PIXELS, images_of
from go_rl.graphs.readers.hf.vision.multimodal import Multimodal

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


@dataclass(frozen=True)
class NetworkFile:
    """A file that describes a network."""

    format: str
    """Form of the file, which the graph's facts hold."""
    title: str
    config: ModelConfig
    family: TransformerFamily
    itemsize: float
    """Bytes of an element of what operators make."""
    element: ElementType
    """Type in which they compute."""
    check: Callable[[Mapping[str, Tensor], bool], list[str]]
    """Compares the stored arrays of the network, or of its decoder alone, with those of the file;
    returns notes."""
    stored_itemsize: Callable[[str, tuple[int, ...]], float] | None = None
    """Bytes of an element of a stored array by name and shape; None: ``itemsize``."""
    multimodal: Multimodal | None = None
    """Parts of a model that reads images, too; ``config`` and ``family`` are its text's."""


def build_graph(source: NetworkFile, dims: Mapping[str, int], notes: list[str]) -> OpGraph:
    """Return the graph of a network; ``notes`` are what is known already, and become its notes.

    Raises:
        ReadError: a field or dim is wrong, or stored arrays are of another model.
    """
    config, family = source.config, source.family
    sizes = _sizes(source, dict(dims), notes)
    images = images_of(source.multimodal, sizes) if source.multimodal else None
    meta: dict[str, Any] = {"format": source.format, "dims": sizes, "notes": notes}
    builder = GraphBuilder(source.title, meta)
    net = NetworkBuilder(
        builder, source.itemsize, config.where, source.stored_itemsize, source.element
    )
    length = sizes.get("source", 0)
    if family.kind == "speech":
        length = config.count("max_source_positions", 1500, most=1 << 20)
    tokens = Tokens(sizes["batch"], sizes.get("sequence", 1), sizes.get("cache", 0))
    with naming(config.where):
        result = add_network(Reading(net, config, family, tokens, length, images))
        is_part = bool(tokens.cache) and family.encoder is not None
        notes += source.check(net.stored, is_part or sizes.get("images") == 0)
        builder.mark_output(result.producer)
        return builder.build()


def _sizes(source: NetworkFile, given: dict[str, int], notes: list[str]) -> dict[str, int]:
    """Return the value of each dim; ``notes`` gets a sentence for those that were not given."""
    config, family = source.config, source.family
    more = source.multimodal.dims if source.multimodal else ()
    known = (*DIMS[family.kind], *more)
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
    if more:
        sizes.setdefault("images", 0 if given.get("cache") else 1)
        sizes |= {name: PIXELS for name in more if name not in sizes}
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
        kept = "latent vectors" if family.latent else "keys and values"
        notes.append(f"decode: {kept} of earlier tokens stay on their devices, as weights do")
        if more and not sizes["images"]:
            notes.append("decode: images are in the cache; the graph is the language model")
        if family.encoder is not None:
            notes.append("decode: the encoder has run; the graph is the decoder")
    return sizes


def _longest(config: ModelConfig, family: TransformerFamily) -> int:
    if family.positions == "relative" and not config.has("max_position_embeddings"):
        return 512
    limit = config.count("max_position_embeddings") - family.reserved
    return max(1, min(limit, LONGEST_DEFAULT))
