"""The zoo's networks over text: transformers and recurrent networks at published sizes."""

from __future__ import annotations

from go_rl.zoo.bert import BertConfig, bert
from go_rl.zoo.models.building import Built, flax_model, integers
from go_rl.zoo.models.recurrent import GNMT, RNNLM, Seq2Seq
from go_rl.zoo.models.transformers import GPT, T5, MoETransformer, Transformer
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


def _gpt(name: str, network: GPT, batch: int, sequence: int) -> ZooModel:
    return ZooModel(name, "gpt", lambda: flax_model(network, integers(batch, sequence)))


def _rnnlm(layers: int, width: int, batch: int, steps: int) -> Built:
    return flax_model(RNNLM(layers, width), integers(batch, steps))


def _gnmt(layers: int, width: int, batch: int, steps: int) -> Built:
    return flax_model(GNMT(layers, width), integers(batch, steps), integers(batch, steps))


BERT = (
    _bert("bert-tiny", BERT_TINY, 8, 128),
    _bert("bert-mini", BERT_MINI, 1, 256),
    _bert("bert-small", BERT_SMALL, 4, 128),
    _bert("bert-medium", BERT_MEDIUM, 2, 512),
    _bert("bert-base", BERT_BASE, 1, 128),
    _bert("bert-base-b8-s384", BERT_BASE, 8, 384),
    _bert("bert-base-masked", BERT_BASE, 1, 128, masked=True),
    _bert("bert-large", BERT_LARGE, 1, 384),
)

ENTRIES: tuple[ZooModel, ...] = (
    *BERT,
    _gpt("gpt2-small", GPT(), 1, 256),
    ZooModel("t5-small", "t5", lambda: flax_model(T5(), integers(1, 128), integers(1, 64))),
    ZooModel(
        "transformer-base",
        "transformer",
        lambda: flax_model(Transformer(), integers(4, 64), integers(4, 64)),
    ),
    ZooModel("rnnlm-2-layers", "rnnlm", lambda: _rnnlm(2, 1500, 20, 35)),
    ZooModel("gnmt-2-layers", "gnmt", lambda: _gnmt(2, 1024, 32, 12)),
    ZooModel("gnmt-8-layers", "gnmt", lambda: _gnmt(8, 1024, 32, 40)),
    ZooModel(
        "seq2seq-lstm", "seq2seq", lambda: flax_model(Seq2Seq(), integers(8, 20), integers(8, 20))
    ),
    ZooModel(
        "moe-transformer-8-experts",
        "moe",
        lambda: flax_model(MoETransformer(), integers(2, 128)),
    ),
)
