"""Features of loop nests: leaf vectors and the compact AST."""

from go_rl.programs.features.compact_ast import (
    CompactAst,
    compact_ast,
    positional_encoding,
)
from go_rl.programs.features.layout import (
    FEATURE_NAMES,
    FEATURE_VERSION,
    LEAF_NUMBERS,
    group_slices,
)
from go_rl.programs.features.leaf_vectors import leaf_vectors

__all__ = [
    "FEATURE_NAMES",
    "FEATURE_VERSION",
    "LEAF_NUMBERS",
    "CompactAst",
    "compact_ast",
    "group_slices",
    "leaf_vectors",
    "positional_encoding",
]
