"""`OperatorRows`: operators and their sizes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float64, Int64, Shaped

from go_rl.core import GoRLError
from go_rl.core.operators import FLOAT_BYTES, MATMUL_SIZES, window_positions

PRODUCTS = ("bmm", "linear", "conv")
"""Operators that multiply matrices."""
TWO_INPUTS = ("add", "div", "mul", "pow")
ONE_INPUT = ("addu", "divu", "gelu", "ln", "mulu", "powu", "relu", "softmax", "tanh")
STREAMS = tuple(sorted((*TWO_INPUTS, *ONE_INPUT)))
"""Operators that read and write each element about once."""
NORMS = ("softmax", "ln")
"""Streams that normalise a row."""
OPERATORS: tuple[str, ...] = (*PRODUCTS, *STREAMS)
STREAM_SIZES = ("batch", "width")
CONV_SIZES = ("batch", "input_channel", "output_channel", "kernel_size", "input_size", "stride",
              "padding")  # fmt: skip
SIZES: tuple[str, ...] = tuple(dict.fromkeys((*MATMUL_SIZES, *STREAM_SIZES, *CONV_SIZES)))
"""All sizes that a table may have, in its order of columns."""
LETTERS: Mapping[str, str] = {"B": "batch", "M": "rows", "N": "depth", "K": "columns", "H": "width"}
"""Sizes by the letters of NeuSight's tables (Lee et al., ASPLOS 2025), whose N is summed over."""
CONV_KERNEL, CONV_STRIDE = 3, 1
"""The only convolutions that were measured."""


class OperatorError(GoRLError):
    """An operator is unknown, or its sizes are wrong."""


def sizes_of(op: str) -> tuple[str, ...]:
    """Return the names of the sizes that an operator has.

    ``bmm`` and ``linear`` multiply a batch of matrices, rows × depth by depth × columns. Streams
    have a batch of rows of ``width`` elements; ``softmax`` and ``ln`` normalise a row. ``conv`` has
    square images and kernels.
    """
    if op == "conv":
        return CONV_SIZES
    return MATMUL_SIZES if op in PRODUCTS else STREAM_SIZES


@dataclass(frozen=True, eq=False)
class OperatorRows:
    """``R`` operators."""

    op: Shaped[np.ndarray, "R"]
    """[R] names, of `OPERATORS`."""
    sizes: Mapping[str, Int64[np.ndarray, "R"]]
    """[R] each of `SIZES`; 0: the operator has none such."""

    def __len__(self) -> int:
        return len(self.op)

    def take(self, rows: np.ndarray) -> OperatorRows:
        """Return some rows."""
        return OperatorRows(self.op[rows], {name: each[rows] for name, each in self.sizes.items()})

    def is_any(self, ops: Sequence[str]) -> np.ndarray:
        """Return [R] whether the operator is one of these."""
        return np.isin(self.op, np.asarray(ops))

    def products(self) -> tuple[Float64[np.ndarray, "R"], ...]:
        """Return [R] batch, rows, columns and depth of the product that each row of
        `PRODUCTS` computes: a linear layer multiplies the rows of a whole batch by one matrix, a
        convolution is the product of its unfolded image."""
        size = {name: each.astype(np.float64) for name, each in self.sizes.items()}
        conv = self.op == "conv"
        out = self.conv_outputs().astype(np.float64)
        rows = np.where(self.op == "linear", size["batch"] * size["rows"], size["rows"])
        return (
            np.where(self.op == "bmm", size["batch"], 1.0),
            np.where(conv, size["batch"] * out**2, rows),
            np.where(conv, size["output_channel"], size["columns"]),
            np.where(conv, size["input_channel"] * size["kernel_size"] ** 2, size["depth"]),
        )

    def conv_outputs(self) -> Int64[np.ndarray, "R"]:
        """Return [R] output rows of each convolution; 1 of other operators."""
        size = self.sizes
        out = window_positions(
            size["input_size"], size["kernel_size"], np.maximum(size["stride"], 1), size["padding"]
        )
        return np.where(self.op == "conv", out, 1)

    def streamed_bytes(self) -> Float64[np.ndarray, "R"]:
        """Return [R] bytes that each row of `STREAMS` reads and writes at least."""
        arrays = np.where(self.is_any(TWO_INPUTS), 3.0, 2.0)
        return FLOAT_BYTES * arrays * self.sizes["batch"] * self.sizes["width"]

    def flops(self) -> Float64[np.ndarray, "R"]:
        """Return [R] floating-point operations; one for each element of a stream."""
        batch, rows, columns, depth = self.products()
        elements = self.sizes["batch"].astype(np.float64) * self.sizes["width"]
        return np.where(self.is_any(PRODUCTS), 2.0 * batch * rows * columns * depth, elements)

    def least_bytes(self) -> Float64[np.ndarray, "R"]:
        """Return [R] bytes of all operands and results, each once."""
        batch, rows, columns, depth = self.products()
        conv = self.op == "conv"
        image = self.sizes["batch"] * self.sizes["input_channel"] * self.sizes["input_size"] ** 2.0
        left = np.where(conv, image, batch * rows * depth)
        total = FLOAT_BYTES * (left + batch * depth * columns + batch * rows * columns)
        return np.where(self.is_any(PRODUCTS), total, self.streamed_bytes())
