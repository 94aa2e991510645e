"""The zoo's networks over text: transformers and recurrent networks at published sizes."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import flax.linen as nn

from go_rl.zoo.bert import BertConfig, bert
from go_rl.zoo.models.building import Built, flax_model, floats, integers, training
from go_rl.zoo.models.language.recurrent import GNMT, RNNLM, Seq2Seq
from go_rl.zoo.models.language.transformer_xl import TransformerXL
from go_rl.zoo.models.language.transformers import GPT, T5, MoETransformer, Transformer
from go_rl.zoo.models.zoo_model import ZooModel

BERT_TINY = BertConfig(layers=2, hidden=128, heads=2, feed_forward=512)
BERT_MINI = BertConfig(layers=4, hidden=256, heads=4, feed_forward=1024)
BERT_SMALL = BertConfig(layers=4, hidden=512, heads=8, feed_forward=2048)
BERT_MEDIUM = BertConfig(layers=8, hidden=512, heads=8, feed_forward=2048)
BERT_BASE = BertConfig()
BERT_LARGE = BertConfig(layers=24, hidden=1024, heads=16, feed_forward=4096)


def _bert(
    name: str, config: BertConfig, batch: int, sequence: int, masked: bool = False
) -> ZooModel:
    return ZooModel(name, "bert", lambda: bert(config, batch, sequence, masked=masked))


def _over_tokens(name: str, family: str, network: nn.Module, batch: int, length: int) -> ZooModel:
    return ZooModel(name, family, lambda: flax_model(network, integers(batch, length)))


def _over_pairs(
    name: str, family: str, network: nn.Module, batch: int, lengths: tuple[int, int]
) -> ZooModel:
    source, target = (integers(batch, length) for length in lengths)
    return ZooModel(name, family, lambda: flax_model(network, source, target))


def _xl(layers: int, batch: int, length: int) -> ZooModel:
    name = f"transformer-xl-{layers}-layers"
    return ZooModel(name, "transformer-xl", lambda: _transformer_xl(layers, 512, batch, length))


def _transformer_xl(layers: int, width: int, batch: int, length: int) -> Built:
    network = TransformerXL(layers, width, width // 64, 4 * width)
    return flax_model(network, integers(batch, length), floats(layers, batch, length, width))


def _rnnlm(layers: int, width: int, batch: int, steps: int) -> Built:
    return flax_model(RNNLM(layers, width), integers(batch, steps))


def _gnmt(layers: int, width: int, batch: int, steps: int) -> Built:
    return flax_model(GNMT(layers, width), integers(batch, steps), integers(batch, steps))


def _trained(build: Callable[..., Built], *sizes: int) -> Built:
    return training(build(*sizes))


BERT = (
    _bert("bert-tiny", BERT_TINY, 8, 128),
    _bert("bert-mini", BERT_MINI, 1, 256),
    _bert("bert-small", BERT_SMALL, 4, 128),
    _bert("bert-medium", BERT_MEDIUM, 2, 512),
    _bert("bert-base", BERT_BASE, 1, 128),
    _bert("bert-base-b4-s384", BERT_BASE, 4, 384),
    _bert("bert-base-masked", BERT_BASE, 1, 128, masked=True),
    _bert("bert-large", BERT_LARGE, 1, 384),
)

TRANSFORMERS = (
    _over_tokens("gpt-6-layers", "gpt", GPT(6, 384, 6, last_only=True), 4, 128),
    _over_tokens("gpt2-small", "gpt", GPT(last_only=True, shards=2), 4, 256),
    _over_tokens("gpt2-small-b8", "gpt", GPT(last_only=True, shards=2), 8, 128),
    _over_tokens("gpt2-medium", "gpt", GPT(24, 1024, 16, last_only=True, shards=4), 1, 512),
    _over_tokens("gpt2-large", "gpt", GPT(36, 1280, 20, last_only=True, shards=8), 1, 256),
    _over_pairs("t5-small", "t5", T5(last_only=True), 2, (128, 64)),
    _over_pairs("t5-base", "t5", T5(12, 768, 12, 3072, last_only=True), 1, (256, 64)),
    _over_pairs("transformer-base", "transformer", Transformer(last_only=True), 4, (64, 64)),
    _over_pairs(
        "transformer-big",
        "transformer",
        Transformer(6, 1024, 16, 4096, last_only=True, shards=2),
        4,
        (128, 96),
    ),
    _over_tokens("moe-8-experts", "moe", MoETransformer(), 2, 128),
    _over_tokens("moe-32-experts", "moe", MoETransformer(24, 256, 4, 32), 4, 128),
    _xl(2, 8, 128),
    _xl(4, 4, 256),
    _xl(8, 2, 256),
    _xl(12, 1, 512),
)

RECURRENT = (
    ZooModel("rnnlm-2-layers", "rnnlm", lambda: _rnnlm(2, 1500, 20, 35)),
    ZooModel("rnnlm-4-layers", "rnnlm", lambda: _rnnlm(4, 1024, 64, 32)),
    ZooModel("rnnlm-8-layers", "rnnlm", lambda: _rnnlm(8, 1024, 64, 48)),
    ZooModel("gnmt-2-layers", "gnmt", lambda: _gnmt(2, 1024, 32, 12)),
    ZooModel("gnmt-4-layers", "gnmt", lambda: _gnmt(4, 1024, 32, 24)),
    ZooModel("gnmt-8-layers", "gnmt", lambda: _gnmt(8, 1024, 16, 40)),
    ZooModel("gnmt-8-layers-full", "gnmt", lambda: _gnmt(8, 1024, 4, 200)),
    _over_pairs("seq2seq-4-layers", "seq2seq", Seq2Seq(4, 1000, 20000, 20000), 16, (20, 20)),
    _over_pairs("seq2seq-2-layers", "seq2seq", Seq2Seq(2, 512, 32000, 32000), 16, (30, 24)),
)

TRAINING = tuple(
    ZooModel(
        f"{name}-{layers}-layers-training", name, partial(_trained, build, layers, *sizes), True
    )
    for name, build, sizes in (
        ("rnnlm", _rnnlm, (1024, 64, 32)),
        ("gnmt", _gnmt, (1024, 64, 32)),
        ("transformer-xl", _transformer_xl, (512, 4, 256)),
    )
    for layers in (2, 4, 8)
)
"""Training iterations of the families of GO (Zhou et al. 2020, table 1)."""

ENTRIES: tuple[ZooModel, ...] = (*BERT, *TRANSFORMERS, *RECURRENT, *TRAINING)
