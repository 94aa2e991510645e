"""The families of transformers that are read."""

from __future__ import annotations

from collections.abc import Mapping

from go_rl.graphs.readers.hf.families.dense import DENSE
from go_rl.graphs.readers.hf.families.encoders import ENCODERS
from go_rl.graphs.readers.hf.families.mixtures import MIXTURES
from go_rl.graphs.readers.hf.family import TransformerFamily

FAMILIES: Mapping[str, TransformerFamily] = {**DENSE, **ENCODERS, **MIXTURES}
"""Each by ``model_type``."""
