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
    fields = _object(whole, VISION)
    kind = fields.get("model_type", first)
    if kind not in family.towers:
        raise ReadError(
            f"{whole.where}: {VISION}: model_type {kind!r} is not read; "
            f"{whole.fields['model_type']} has {' or '.join(family.towers)}"
        )
    tower = family.towers[kind]
    filled = _filled(VISION, kind, fields, tower.fields, notes)
    return ModelConfig(f"{whole.where}: {VISION}", filled, tower.fields), tower


def _text(
    whole: ModelConfig, family: MultimodalFamily, notes: list[str]
) -> tuple[ModelConfig, TransformerFamily]:
    field = next((each for each in TEXTS if whole.has(each)), None)
    if field is None:
        language = FAMILIES[family.text]
        return replace(whole, aliases=language.fields), language
    fields = _object(whole, field)
    kind = fields.get("model_type", family.text)
    is_own = isinstance(kind, str) and kind.startswith(str(whole.fields["model_type"]))
    if is_own and kind not in FAMILIES:
        kind = family.text
    if kind not in FAMILIES or FAMILIES[kind].kind != "decoder":
        raise ReadError(
            f"{whole.where}: {field}: model_type {kind!r} is no language model that is read"
            f"{nearest(kind, FAMILIES)}"
        )
    language = FAMILIES[kind]
    filled = _filled(field, kind, fields, language.fields, notes)
    for shared in ("tie_word_embeddings",):
        if whole.has(shared):
            filled[shared] = whole.fields[shared]
    return ModelConfig(f"{whole.where}: {field}", filled, language.fields), language


def _object(whole: ModelConfig, field: str) -> Mapping[str, Any]:
    value = whole.fields[field]
    if not isinstance(value, dict):
        raise whole.wrong(field, "an object")
    return value


def _filled(
    field: str, kind: str, fields: Mapping[str, Any], aliases: Mapping[str, str], notes: list[str]
) -> dict[str, Any]:
    """Return the fields with the class's own for those that are left out, which a note names."""
    defaults = CLASS_DEFAULTS.get(kind, {})
    left = {k: v for k, v in defaults.items() if fields.get(aliases.get(k, k)) is None}
    if left:
        said = ", ".join(f"{name}={value}" for name, value in left.items())
        notes.append(f"{field} leaves out what its class has: {said}")
    return {**fields, **left}
