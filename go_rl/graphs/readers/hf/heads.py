"""Heads: what a model of each class does with the last block's result."""

from __future__ import annotations

from dataclasses import dataclass

from go_rl.core.errors import ReadError, nearest
from go_rl.graphs.readers.hf.family import BlockSizes, TransformerFamily
from go_rl.graphs.readers.hf.mlp import activate, scope_of
from go_rl.graphs.readers.hf.model_config import ModelConfig
from go_rl.graphs.readers.hf.network import NetworkBuilder
from go_rl.graphs.readers.operand import Operand

VOCABULARY = ("ForCausalLM", "LMHeadModel", "ForConditionalGeneration", "ForMaskedLM",
              "ForPreTraining")  # fmt: skip
CLASSES = ("ForSequenceClassification", "ForTokenClassification", "ForImageClassification")
BARE = ("Model",)
"""Ends of the names of classes, by what they add."""


def head_of(config: ModelConfig, family: TransformerFamily) -> str:
    """Return the end of the class's name.

    Raises:
        ReadError: a class whose head is not known.
    """
    if not config.has("architectures"):
        return family.architecture
    named = config.fields["architectures"]
    if not isinstance(named, list) or not named or not isinstance(named[0], str):
        raise config.wrong("architectures", "a list of names of classes")
    known = (*VOCABULARY, *CLASSES, *BARE)
    for end in known:
        if named[0].endswith(end):
            return end
    end = f"For{named[0].rpartition('For')[2]}"
    raise ReadError(
        f"{config.where}: architectures: the head of {named[0]!r} is not read{nearest(end, known)} "
        f"Known are classes that end in {', '.join(known)}"
    )


@dataclass(frozen=True)
class NetworkHead:
    """Head of a network."""

    net: NetworkBuilder
    config: ModelConfig
    family: TransformerFamily
    sizes: BlockSizes

    def add(self, x: Operand, table: str) -> Operand:
        """Add the head that the configuration's class has to ``[b, s, width]``; ``table``: the
        stored array of the embedding of tokens."""
        family, end = self.family, head_of(self.config, self.family)
        if end in BARE:
            pooler = family.heads.pooler
            return self._reading_first(pooler, "tanh", _first(x)) if pooler else x
        if end in CLASSES:
            return self._classes(end, x)
        if family.kind == "image":
            allowed = f"a class that ends in {', '.join(CLASSES + BARE)}"
            raise self.config.wrong("architectures", allowed)
        if family.kind == "encoder":
            x = self._transformed(x)
        return self._vocabulary(x, table)

    def _reading_first(self, path: str, activation: str, x: Operand) -> Operand:
        """Add a product and an activation of ``[b, width]``."""
        x = self.net.linear(path, x, x.shape[-1], bias=True)
        path = f"{scope_of('', path)}activation"
        return activate(self.net, path, x, activation, x.shape[-1])

    def _classes(self, end: str, x: Operand) -> Operand:
        config, heads, is_decoder = self.config, self.family.heads, self.family.kind == "decoder"
        labels = config.fields.get("id2label")
        if labels is not None and not isinstance(labels, dict):
            raise config.wrong("id2label", "an object of names of classes")
        count = len(labels) if labels else config.count("num_labels", 2)
        path = "score" if is_decoder else "classifier"
        if end != "ForTokenClassification":
            x = _first(x)
            if heads.classes:
                x = self._reading_first(heads.classes, heads.classes_activation, x)
                path = heads.sequence_classes
        if heads.dense and not heads.classes:
            x = self._transformed(x)
        return self.net.linear(path, x, count, bias=not is_decoder)

    def _transformed(self, x: Operand) -> Operand:
        """The product, activation and normalisation before a masked model's vocabulary."""
        heads, sizes = self.family.heads, self.sizes
        x = self.net.linear(heads.dense, x, sizes.hidden, "transform" in sizes.biases)
        path = f"{scope_of('', heads.dense)}activation"
        x = activate(self.net, path, x, sizes.activation, sizes.hidden)
        return self.net.norm(heads.norm, x, self.family.norm)

    def _vocabulary(self, x: Operand, table: str) -> Operand:
        family, entries = self.family, self.config.count("vocab_size")
        tied = self.config.flag("tie_word_embeddings", family.tied)
        stored = table if tied else ""
        if family.kind == "encoder":
            heads = family.heads
            return self.net.linear(heads.vocabulary, x, entries, stored=stored,
                                   bias_name=heads.vocabulary_bias)  # fmt: skip
        return self.net.linear(family.head, x, entries, "head" in self.sizes.biases, stored=stored)


def _first(x: Operand) -> Operand:
    """The first token of each sequence, a view."""
    return x.viewed((x.shape[0], x.shape[-1]))
