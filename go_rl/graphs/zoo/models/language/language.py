"""The zoo's networks over text: transformers and recurrent networks at published sizes."""

from __future__ import annotations

from go_rl.graphs.zoo.bert import BertConfig, bert
from go_rl.graphs.zoo.models.building import ZooModel, flax_entry, floats, integers, training_form
from go_rl.graphs.zoo.models.language.attention import TransformerXL
from go_rl.graphs.zoo.models.language.recurrent import GNMT, RNNLM, GridLSTM, Seq2Seq
from go_rl.graphs.zoo.models.language.sized import FROZEN
from go_rl.graphs.zoo.models.language.transformers import GPT, T5, MoETransformer, Transformer


def _bert(
    name: str, config: BertConfig, batch: int, sequence: int, masked: bool = False
) -> ZooModel:
    return ZooModel(name, "bert", lambda: bert(config, batch, sequence, masked=masked))


def _transformer_xl(layers: int, batch: int, length: int) -> ZooModel:
    memory = floats(layers, batch, length, 512)
    name = f"transformer-xl-{layers}-layers"
    return flax_entry(
        name, "transformer-xl", TransformerXL(layers), integers(batch, length), memory
    )


def _rnnlm(layers: int, width: int, batch: int, steps: int) -> ZooModel:
    tokens = integers(batch, steps)
    return flax_entry(f"rnnlm-{layers}-layers", "rnnlm", RNNLM(layers, width), tokens)


def _gnmt(layers: int, batch: int, steps: int, suffix: str = "") -> ZooModel:
    tokens = integers(batch, steps)
    return flax_entry(f"gnmt-{layers}-layers{suffix}", "gnmt", GNMT(layers), tokens, tokens)


BERT = (
    _bert("bert-tiny", BertConfig(2, 128, 2, 512), 8, 128),
    _bert("bert-mini", BertConfig(4, 256, 4, 1024), 1, 256),
    _bert("bert-small", BertConfig(4, 512, 8, 2048), 4, 128),
    _bert("bert-medium", BertConfig(8, 512, 8, 2048), 2, 512),
    _bert("bert-base", BertConfig(), 1, 128),
    _bert("bert-base-b4-s384", BertConfig(), 4, 384),
    _bert("bert-base-masked", BertConfig(), 1, 128, masked=True),
    _bert("bert-large", BertConfig(24, 1024, 16, 4096), 1, 384),
)

GPT_2 = (
    flax_entry("gpt-6-layers", "gpt", GPT(6, 384, 6, last_only=True), integers(4, 128)),
    flax_entry("gpt2-small", "gpt", GPT(last_only=True, shards=2), integers(4, 256)),
    flax_entry("gpt2-small-b8", "gpt", GPT(last_only=True, shards=2), integers(8, 128)),
    flax_entry("gpt2-medium", "gpt", GPT(24, 1024, 16, last_only=True, shards=4), integers(1, 512)),
    flax_entry("gpt2-large", "gpt", GPT(36, 1280, 20, last_only=True, shards=8), integers(1, 256)),
)

LARGER = tuple(ZooModel(name, model.family, model.build) for name, model in FROZEN.items())
"""Networks that `sized_graph` traces at any batch and sequence, at the sizes it starts from."""

TRANSFORMERS = (
    flax_entry("t5-small", "t5", T5(last_only=True), integers(2, 128), integers(2, 64)),
    flax_entry(
        "t5-base", "t5", T5(12, 768, 12, 3072, last_only=True), integers(1, 256), integers(1, 64)
    ),
    flax_entry(
        "transformer-base",
        "transformer",
        Transformer(last_only=True),
        integers(4, 64),
        integers(4, 64),
    ),
    flax_entry(
        "transformer-big",
        "transformer",
        Transformer(6, 1024, 16, 4096, last_only=True, shards=2),
        integers(4, 128),
        integers(4, 96),
    ),
    flax_entry("moe-8-experts", "moe", MoETransformer(), integers(2, 128)),
    flax_entry("moe-32-experts", "moe", MoETransformer(24, 256, 4, 32), integers(4, 128)),
    _transformer_xl(2, 8, 128),
    _transformer_xl(4, 4, 256),
    _transformer_xl(8, 2, 256),
    _transformer_xl(12, 1, 512),
)

RECURRENT = (
    _rnnlm(2, 1500, 20, 35),
    _rnnlm(4, 1024, 64, 32),
    _rnnlm(8, 1024, 64, 48),
    _gnmt(2, 32, 12),
    _gnmt(4, 32, 24),
    _gnmt(8, 16, 40),
    _gnmt(8, 4, 200, "-full"),
    _gnmt(3, 64, 16),
    _gnmt(6, 32, 16),
    flax_entry("grid-lstm-1-layer", "grid-lstm", GridLSTM(1), integers(8, 14), integers(8, 12)),
    flax_entry("grid-lstm-2-layers", "grid-lstm", GridLSTM(2), integers(8, 12), integers(8, 12)),
    flax_entry(
        "seq2seq-4-layers",
        "seq2seq",
        Seq2Seq(4, 1000, 20000, 20000),
        integers(16, 20),
        integers(16, 20),
    ),
    flax_entry(
        "seq2seq-2-layers",
        "seq2seq",
        Seq2Seq(2, 512, 32000, 32000),
        integers(16, 30),
        integers(16, 24),
    ),
)

TRAINING = (
    *(training_form(_rnnlm(layers, 1024, 64, 32)) for layers in (2, 4, 8)),
    *(training_form(_gnmt(layers, 64, 32)) for layers in (2, 4, 8)),
    *(training_form(_transformer_xl(layers, 4, 256), {1: 0, 2: 1}) for layers in (2, 4, 8)),
)
"""Training iterations of the families of GO (Zhou et al. 2020, table 1)."""

ENTRIES: tuple[ZooModel, ...] = (*BERT, *GPT_2, *LARGER, *TRANSFORMERS, *RECURRENT, *TRAINING)
