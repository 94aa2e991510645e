"""`OperatorRows`: operators and their sizes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float64, Int64, Shaped

from go_rl.core import GoRLError
from go_rl.costs.operator_sizes import FLOAT_BYTES, MATMUL_SIZES, window_positions

PRODUCTS = ("bmm", "linear", "conv", "grouped")
"""Operators that multiply matrices; ``grouped`` is a convolution in groups of several channels."""
CONVOLUTIONS = ("conv", "grouped")
ATTENTION = "attention"
"""Softmax attention in one kernel: scores never leave the multiprocessors."""
TWO_INPUTS = ("add", "div", "mul", "pow")
ONE_INPUT = ("addu", "divu", "gelu", "ln", "mulu", "powu", "relu", "softmax", "tanh")
STREAMS = tuple(sorted((*TWO_INPUTS, *ONE_INPUT)))
"""Operators that read and write each element about once."""
NORMS = ("softmax", "ln")
"""Streams that normalise a row."""
WINDOWS = ("batchnorm", "depthwise", "pool")
"""Streams over images whose channels stay as many."""
MOVES = (*WINDOWS, "columnsum", "concat", "copy", "gather", "rmsnorm", "sum", "transpose")
"""Further streams, which NeuSight's tables do not have: ``copy`` keeps rows together, ``transpose``
does not."""
ONE_READ = "relu"
"""Stream that stands for whatever moves bytes: it reads and writes each element once."""
SUMS = ("columnsum", "sum")
"""Streams that write next to nothing."""
BY_ROWS = (*NORMS, "rmsnorm", "sum")
"""Streams that sum along each row."""
STREAMED: tuple[str, ...] = (*STREAMS, *MOVES)
OPERATORS: tuple[str, ...] = (*PRODUCTS, ATTENTION, *STREAMED)
STREAM_SIZES = ("batch", "width")
CONV_SIZES = ("batch", "input_channel", "output_channel", "kernel_size", "input_size", "stride",
              "padding")  # fmt: skip
ATTENTION_SIZES = ("batch", "heads", "groups", "queries", "keys", "depth", "causal")
SIZES: tuple[str, ...] = tuple(
    dict.fromkeys((*MATMUL_SIZES, *STREAM_SIZES, *CONV_SIZES, *ATTENTION_SIZES))
)
"""All sizes that a table may have, in its order of columns."""
LETTERS: Mapping[str, str] = {"B": "batch", "M": "rows", "N": "depth", "K": "columns", "H": "width"}
"""Sizes by the letters of NeuSight's tables (Lee et al., ASPLOS 2025), whose N is summed over."""
CONV_KERNEL, CONV_STRIDE = 3, 1
"""The only convolutions that were measured up to Ampere."""


class OperatorError(GoRLError):
    """An operator is unknown, or its sizes are wrong."""


def sizes_of(op: str) -> tuple[str, ...]:
    """Return the names of the sizes that an operator has.

    ``bmm`` and ``linear`` multiply a batch of matrices, rows × depth by depth × columns. Streams
    have a batch of rows of ``width`` elements; ``softmax`` and ``ln`` normalise a row. ``conv`` and
    `WINDOWS` have square images and kernels, ``grouped`` besides a number of groups. ``attention``
    has ``heads`` of queries, of which ``groups`` share one head of keys and values; ``causal`` is 0
    or 1.
    """
    if op == "grouped":
        return (*CONV_SIZES, "groups")
    if op == ATTENTION:
        return ATTENTION_SIZES
    if op == "conv" or op in WINDOWS:
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

    @property
    def float_sizes(self) -> dict[str, Float64[np.ndarray, "R"]]:
        """`sizes` as fractions, whose products do not overflow."""
        return {name: each.astype(np.float64) for name, each in self.sizes.items()}

    def take(self, rows: np.ndarray) -> OperatorRows:
        """Return some rows."""
        return OperatorRows(self.op[rows], {name: each[rows] for name, each in self.sizes.items()})

    def is_any(self, ops: Sequence[str]) -> np.ndarray:
        """Return [R] whether the operator is one of these."""
        return np.isin(self.op, np.asarray(ops))

    def products(self) -> tuple[Float64[np.ndarray, "R"], ...]:
        """Return [R] batch, rows, columns and depth of the product that each row of
        `PRODUCTS` computes: a linear layer multiplies the rows of a whole batch by one matrix, a
        convolution is the product of its unfolded image, one for each group."""
        size = self.float_sizes
        conv = self.is_any(CONVOLUTIONS)
        groups = np.where(self.op == "grouped", size["groups"], 1.0)
        out = self.conv_outputs().astype(np.float64)
        rows = np.where(self.op == "linear", size["batch"] * size["rows"], size["rows"])
        unfolded = size["input_channel"] / groups * size["kernel_size"] ** 2
        return (
            np.where(self.op == "bmm", size["batch"], groups),
            np.where(conv, size["batch"] * out**2, rows),
            np.where(conv, size["output_channel"] / groups, size["columns"]),
            np.where(conv, unfolded, size["depth"]),
        )

    def conv_outputs(self) -> Int64[np.ndarray, "R"]:
        """Return [R] output rows of each window over an image; 1 of other operators."""
        size = self.sizes
        out = window_positions(
            size["input_size"], size["kernel_size"], np.maximum(size["stride"], 1), size["padding"]
        )
        return np.where(self.is_any((*CONVOLUTIONS, *WINDOWS)), out, 1)

    def stream_rows(self) -> tuple[Float64[np.ndarray, "R"], Float64[np.ndarray, "R"]]:
        """Return [R] rows and their elements in the result of each row of `STREAMED`; of sums in
        what they read. A row of an image is one of its channels."""
        size, window = self.sizes, self.is_any(WINDOWS)
        channels = size["batch"] * size["input_channel"]
        return (
            np.where(window, channels, size["batch"]).astype(np.float64),
            np.where(window, self.conv_outputs() ** 2, size["width"]).astype(np.float64),
        )

    def window_elements(self) -> Float64[np.ndarray, "R"]:
        """Return [R] elements that each element of a result is computed of, in `WINDOWS`; else
        1."""
        return np.where(self.is_any(WINDOWS), self.sizes["kernel_size"] ** 2.0, 1.0)

    def streamed_bytes(self) -> Float64[np.ndarray, "R"]:
        """Return [R] bytes that each row of `STREAMED` reads and writes at least."""
        rows, length = self.stream_rows()
        arrays = np.select([self.is_any(TWO_INPUTS), self.is_any(SUMS)], [3.0, 1.0], 2.0)
        read = rows * self.sizes["input_size"] ** 2.0
        images = read + rows * length
        return FLOAT_BYTES * np.where(self.is_any(WINDOWS), images, arrays * rows * length)

    def result_elements(self) -> Float64[np.ndarray, "R"]:
        """Return [R] elements that each row writes."""
        batch, height, columns, _ = self.products()
        rows, length = self.stream_rows()
        size = self.float_sizes
        attended = size["batch"] * size["heads"] * size["queries"] * size["depth"]
        return np.select(
            [self.is_any(PRODUCTS), self.op == ATTENTION, self.op == "sum", self.op == "columnsum"],
            [batch * height * columns, attended, rows, length],
            rows * length,
        )

    def flops(self) -> Float64[np.ndarray, "R"]:
        """Return [R] floating-point operations; one for each element of a stream, for all of a
        window."""
        batch, rows, columns, depth = self.products()
        streamed, length = self.stream_rows()
        products = 2.0 * batch * rows * columns * depth
        elements = streamed * length * self.window_elements()
        found = np.where(self.is_any(PRODUCTS), products, elements)
        return np.where(self.op == ATTENTION, self._attention_flops(), found)

    def _attention_flops(self) -> Float64[np.ndarray, "R"]:
        """[R] of two products; of causal attention about half of the scores count."""
        size = self.float_sizes
        keys = np.where(size["causal"] > 0, (size["keys"] + 1) / 2, size["keys"])
        return 4.0 * size["batch"] * size["heads"] * size["queries"] * keys * size["depth"]

    def least_bytes(self) -> Float64[np.ndarray, "R"]:
        """Return [R] bytes of all operands and results, each once."""
        batch, rows, columns, depth = self.products()
        size = self.float_sizes
        image = size["batch"] * size["input_channel"] * size["input_size"] ** 2
        left = np.where(self.is_any(CONVOLUTIONS), image, batch * rows * depth)
        total = left + batch * depth * columns + batch * rows * columns
        held = size["keys"] / np.maximum(size["groups"], 1)
        attended = 2 * size["batch"] * size["heads"] * size["depth"] * (size["queries"] + held)
        found = np.where(self.op == ATTENTION, attended, total) * FLOAT_BYTES
        return np.where(self.is_any((*PRODUCTS, ATTENTION)), found, self.streamed_bytes())
