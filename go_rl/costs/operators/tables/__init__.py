"""Operators of networks as a library launches them one by one, float32."""

from go_rl.costs.operators.tables.operator_rows import (
    OPERATORS,
    PRODUCTS,
    STREAMS,
    OperatorError,
    OperatorRows,
)
from go_rl.costs.operators.tables.operator_table import read_operators

__all__ = ["OPERATORS", "PRODUCTS", "STREAMS", "OperatorError", "OperatorRows", "read_operators"]
