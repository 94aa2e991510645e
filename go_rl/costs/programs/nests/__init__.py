"""Loop nests: scheduled tensor programs as trees of loops and statements, whatever made them."""

from go_rl.costs.programs.nests.check_nest import MOST_LEAVES, check_nest
from go_rl.costs.programs.nests.index import (
    Index,
    IndexOperation,
    LoopVariable,
    NestError,
)
from go_rl.costs.programs.nests.nest import (
    ANNOTATIONS,
    OPERATION_NAMES,
    OUTSIDE,
    Access,
    ForLoop,
    LoopNest,
    NestBuffer,
    NestLeaf,
    Statement,
)
from go_rl.costs.programs.nests.nest_json import nest_from_json, nest_to_json, parallel_launches
from go_rl.costs.programs.nests.nest_parts import nest_parts

__all__ = [
    "ANNOTATIONS",
    "MOST_LEAVES",
    "OPERATION_NAMES",
    "OUTSIDE",
    "Access",
    "ForLoop",
    "Index",
    "IndexOperation",
    "LoopNest",
    "LoopVariable",
    "NestBuffer",
    "NestError",
    "NestLeaf",
    "Statement",
    "check_nest",
    "nest_from_json",
    "nest_parts",
    "nest_to_json",
    "parallel_launches",
]
