"""Whole networks of each kind: embeddings, stacks of blocks, heads."""

from __future__ import annotations

from dataclasses import dataclass, replace

from go_rl.core.errors import ReadError
from go_rl.graphs.readers.cost import Tensor
from go_rl.graphs.readers.hf.block import BlockPlan, add_blocks
from go_rl.graphs.readers.hf.family import BlockSizes, Names, Tokens, TransformerFamily
from go_rl.graphs.readers.hf.heads import NetworkHead
from go_rl.graphs.readers.hf.model_config import ModelConfig
from go_rl.graphs.readers.hf.network import ID_BYTES, Held, NetworkBuilder
from go_rl.graphs.readers.hf.resolve import MOST_LAYERS, block_sizes
from go_rl.graphs.readers.hf.vision.images import Images, add_images
from go_rl.graphs.readers.hf.vision.tower import add_tower
from go_rl.graphs.readers.operand import Operand


@dataclass(frozen=True)
class Reading:
    """Parts that a network is made from."""

    net: NetworkBuilder
    config: ModelConfig
    family: TransformerFamily
    tokens: Tokens
    """Tokens of the one stack, or of the decoder where there are two."""
    source: int = 0
    """Tokens of the encoder."""
    images: Images | None = None
    """Images among the tokens; None: there are none."""


def add_network(reading: Reading) -> Operand:
    """Add the whole network and return its result."""
    kind, family = reading.family.kind, reading.family
    sizes = block_sizes(reading.config, family)
    if kind == "image":
        x = add_tower(reading.net, reading.config, family, sizes, reading.tokens.batch)
    elif kind in ("decoder", "encoder"):
        x = _text(reading, sizes)
    else:
        x = _two_stacks(reading, sizes)
    head = NetworkHead(reading.net, reading.config, family, sizes)
    return head.add(x, _table(reading))


def _table(reading: Reading) -> str:
    """Return the stored array of the embedding of tokens."""
    if reading.family.kind == "encoder-decoder":
        return "shared.weight"
    return f"{reading.family.names.root}.{reading.family.names.embed}.weight"


def _text(reading: Reading, sizes: BlockSizes) -> Operand:
    ids = _ids(reading, "input_ids", reading.tokens)
    x = _embedded(reading, sizes, ids, reading.tokens)
    if reading.images is not None:
        x = add_images(reading.net, reading.images, x)
    return add_blocks(_plan(reading, reading.family.names, sizes, reading.tokens), x)


def _ids(reading: Reading, name: str, tokens: Tokens) -> Operand:
    return reading.net.input(name, (tokens.batch, tokens.new), ID_BYTES)


def _embedded(reading: Reading, sizes: BlockSizes, ids: Operand, tokens: Tokens) -> Operand:
    """Add the look-ups of tokens, positions and types, their sum and its normalisation."""
    net, config, names, family = reading.net, reading.config, reading.family.names, reading.family
    root, width = f"{names.root}.", sizes.hidden
    x = net.embed(root + names.embed, ids, config.count("vocab_size"), width)
    if family.positions == "learned":
        limit = config.count("max_position_embeddings")
        _check_length(reading, tokens, limit - family.reserved)
        rows = limit + family.position_offset
        x = net.sum(f"{root}positions", x,
                    net.positions(root + names.positions, tokens.new, rows, width))  # fmt: skip
    if names.token_types:
        types = net.input("token_type_ids", (tokens.batch, tokens.new), ID_BYTES)
        rows = config.count("type_vocab_size", 2)
        x = net.sum(f"{root}types", x, net.embed(root + names.token_types, types, rows, width))
    return net.norm(root + names.embed_norm, x, family.norm) if names.embed_norm else x


def _check_length(reading: Reading, tokens: Tokens, longest: int) -> None:
    if tokens.new + tokens.cache > longest:
        field = reading.config.name("max_position_embeddings")
        raise ReadError(
            f"{reading.config.where}: {tokens.new + tokens.cache} tokens a sequence, and {field} "
            f"allows {longest}; set fewer with --dim sequence=… and cache=…"
        )


def _plan(reading: Reading, names: Names, sizes: BlockSizes, tokens: Tokens) -> BlockPlan:
    family = replace(reading.family, names=names)
    if family.order == "parallel" and not reading.config.flag("use_parallel_residual", True):
        family = replace(family, order="pre")
    causal = family.kind not in ("encoder", "image")
    return BlockPlan(reading.net, family, sizes, tokens, causal)


def _two_stacks(reading: Reading, sizes: BlockSizes) -> Operand:
    """Add the encoder, unless its keys and values are there, and the decoder."""
    is_speech = reading.family.kind == "speech"
    tokens, family = reading.tokens, reading.family
    context = None
    if not tokens.cache:
        context = _speech_encoder(reading) if is_speech else _t5_stack(reading, sizes, None)
    if not is_speech:
        return _t5_stack(reading, sizes, context, decoder=True)
    x = _embedded(reading, sizes, _ids(reading, "decoder_input_ids", tokens), tokens)
    plan = _plan(reading, family.names, sizes, tokens)
    return add_blocks(replace(plan, context=context, context_tokens=reading.source), x)


def _t5_stack(
    reading: Reading, sizes: BlockSizes, context: Operand | None, decoder: bool = False
) -> Operand:
    net, config, family = reading.net, reading.config, reading.family
    tokens = reading.tokens if decoder else Tokens(reading.tokens.batch, reading.source)
    names = family.names if decoder else family.encoder
    assert names is not None
    if not sizes.gated:
        names = replace(names, up=names.up.removesuffix("_1"))
    if decoder:
        sizes = replace(
            sizes, layers=config.count("num_decoder_layers", sizes.layers, most=MOST_LAYERS)
        )
    ids = _ids(reading, "decoder_input_ids" if decoder else "input_ids", tokens)
    net.array("shared.weight", (config.count("vocab_size"), sizes.hidden))
    x = net.embed(f"{names.root}.embed_tokens", ids, config.count("vocab_size"), sizes.hidden,
                  stored="shared.weight")  # fmt: skip
    buckets = config.count("relative_attention_num_buckets", 32)
    pairs = Operand(Tensor((tokens.new, tokens.new + tokens.cache), ID_BYTES))
    path = f"{names.root}.{names.layers}.0.{names.bias_table}"
    bias = net.embed(path, pairs, buckets, sizes.heads)
    plan = replace(_plan(reading, names, sizes, tokens), context=context,
                   context_tokens=reading.source, causal=decoder)  # fmt: skip
    return add_blocks(plan, x, bias)


def _speech_encoder(reading: Reading) -> Operand:
    """Add two convolutions over a spectrogram, the second of stride 2, positions and blocks."""
    net, names = reading.net, reading.family.encoder
    assert names is not None
    aliases = {"num_hidden_layers": "encoder_layers", "intermediate_size": "encoder_ffn_dim",
               "num_attention_heads": "encoder_attention_heads"}  # fmt: skip
    config = replace(reading.config, aliases={**reading.config.aliases, **aliases})
    sizes = block_sizes(config, reading.family)
    batch, bins, width = reading.tokens.batch, config.count("num_mel_bins", 80), sizes.hidden
    x = net.input("input_features", (batch, bins, 2 * reading.source))
    for name, length, stride in (("conv1", 2 * reading.source, 1), ("conv2", reading.source, 2)):
        path = f"{names.root}.{name}"
        held = {"weight": net.array(f"{path}.weight", (width, x.shape[1], 3)),
                "bias": net.array(f"{path}.bias", (width,))}  # fmt: skip
        operands = {"input": x, "stride": [stride], "padding": [1]}
        x = net.add(path, "conv1d", operands, (batch, width, length), Held(held))
        x = net.add(f"{path}_activation", "gelu", {"self": x}, x.shape)
    x = Operand(Tensor((batch, reading.source, width), net.itemsize), x.producer)
    rows = reading.source
    x = net.sum(f"{names.root}.positions", x,
                net.positions(f"{names.root}.{names.positions}", rows, rows, width))  # fmt: skip
    tokens = Tokens(batch, rows)
    return add_blocks(replace(_plan(reading, names, sizes, tokens), causal=False), x)
