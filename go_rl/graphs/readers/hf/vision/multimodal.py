"""Configurations of models that read images and text: the parts, each a configuration."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from go_rl.core.errors import ReadError, nearest
from go_rl.graphs.readers.hf.families import FAMILIES
from go_rl.graphs.readers.hf.family import TransformerFamily
from go_rl.graphs.readers.hf.model_config import ModelConfig
from go_rl.graphs.readers.hf.vision.multimodal_families import (
    CLASS_DEFAULTS,
    MULTIMODAL,
    MultimodalFamily,
)

VISION = "vision_config"
TEXTS = ("text_config", "language_config")
"""Fields that hold the language model's configuration; without them the whole one is it."""

_TIED = "tie_word_embeddings"


@dataclass(frozen=True)
class Multimodal:
    """Parts of a model that reads images and text."""

    whole: ModelConfig
    family: MultimodalFamily
    vision: ModelConfig
    tower: TransformerFamily
    text: ModelConfig
    language: TransformerFamily
    """Family of the language model."""

    @property
    def dims(self) -> tuple[str, ...]:
        """Dims beside those of the language model."""
        return ("images", *self.family.dims)


def multimodal(kind: str, where: str, fields: Mapping[str, Any], notes: list[str]) -> Multimodal:
    """Return the parts of a configuration of family ``kind``.

    Raises:
        ReadError: a part is missing, or of a family that is not read.
    """
    family, whole = MULTIMODAL[kind], ModelConfig(where, fields, {})
    vision, tower = _vision(whole, family, notes)
    text, language = _text(whole, family, notes)
    names = replace(language.names, root=family.text_root)
    language = replace(language, names=names, head=family.text_head)
    return Multimodal(whole, family, vision, tower, text, language)


def _vision(
    whole: ModelConfig, family: MultimodalFamily, notes: list[str]
) -> tuple[ModelConfig, TransformerFamily]:
    first = next(iter(family.towers))
    if not whole.has(VISION):
        raise ReadError(f"{whole.where}: no field {VISION!r}{nearest(VISION, whole.fields)}")
    part = _part(whole, VISION)
    kind = part.text("model_type", first)
    if kind not in family.towers:
        raise ReadError(
            f"{part.where}: model_type {kind!r} is not read; "
            f"{whole.fields['model_type']} has {' or '.join(family.towers)}"
        )
    tower = family.towers[kind]
    return _filled(part, kind, tower.fields, notes), tower


def _text(
    whole: ModelConfig, family: MultimodalFamily, notes: list[str]
) -> tuple[ModelConfig, TransformerFamily]:
    field = next((each for each in TEXTS if whole.has(each)), None)
    if field is None:
        language = FAMILIES[family.text]
        return replace(whole, aliases=language.fields), language
    part = _part(whole, field)
    kind = part.text("model_type", family.text)
    if kind not in FAMILIES and kind.startswith(whole.text("model_type")):
        kind = family.text
    if kind not in FAMILIES or FAMILIES[kind].kind != "decoder":
        raise ReadError(
            f"{part.where}: model_type {kind!r} is no language model that is read"
            f"{nearest(kind, FAMILIES)}"
        )
    language = FAMILIES[kind]
    filled = _filled(part, kind, language.fields, notes)
    if not whole.has(_TIED):
        return filled, language
    return replace(filled, fields={**filled.fields, _TIED: whole.fields[_TIED]}), language


def _part(whole: ModelConfig, field: str) -> ModelConfig:
    """Return the configuration in a field."""
    value = whole.fields[field]
    if not isinstance(value, dict):
        raise whole.wrong(field, "an object")
    return ModelConfig(f"{whole.where}: {field}", value, {})


def _filled(
    part: ModelConfig, kind: str, aliases: Mapping[str, str], notes: list[str]
) -> ModelConfig:
    """Return a part with its class's value for each field left out, which a note names."""
    left = {k: v for k, v in CLASS_DEFAULTS.get(kind, {}).items() if not part.has(k)}
    if left:
        field, said = part.where.rpartition(" ")[2], ", ".join(f"{k}={v}" for k, v in left.items())
        notes.append(f"{field} leaves out what its class has: {said}")
    return ModelConfig(part.where, {**part.fields, **left}, aliases)
