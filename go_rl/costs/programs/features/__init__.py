"""Features of loop nests: leaf vectors and the compact AST."""

from go_rl.costs.programs.features.compact_ast import (
    CompactAst,
    PackedAsts,
    compact_ast,
    join_asts,
    pack_asts,
    positional_encoding,
)
from go_rl.costs.programs.features.layout import (
    FEATURE_NAMES,
    FEATURE_VERSION,
    LEAF_NUMBERS,
)
from go_rl.costs.programs.features.leaf_vectors import leaf_vectors

__all__ = [
    "FEATURE_NAMES",
    "FEATURE_VERSION",
    "LEAF_NUMBERS",
    "CompactAst",
    "PackedAsts",
    "compact_ast",
    "join_asts",
    "leaf_vectors",
    "pack_asts",
    "positional_encoding",
]
