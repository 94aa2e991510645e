"""`TensorTask`: one operator with its sizes, for which programs are drawn and measured.

An image is (rows, columns, channels) with the channels contiguous, one at a time.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from math import prod
from types import MappingProxyType

from go_rl.core import GoRLError
from go_rl.core.errors import nearest
from go_rl.core.files.strict_json import parse_json, shown
from go_rl.costs.operator_sizes import IMAGE_SIZES, MATMUL_SIZES, WINDOW_SIZES, window_positions
from go_rl.runtime.records import canonical_json

SIZES: Mapping[str, tuple[str, ...]] = MappingProxyType({
    "conv2d": (*IMAGE_SIZES, "filters", *WINDOW_SIZES, "padding", "groups"),
    "depthwise_conv2d": (*IMAGE_SIZES, *WINDOW_SIZES, "padding"),
    "matmul": MATMUL_SIZES,
    "max_pool": (*IMAGE_SIZES, *WINDOW_SIZES, "padding"),
    "average_pool": (*IMAGE_SIZES, *WINDOW_SIZES, "padding"),
    "softmax": ("rows", "columns"),
    "layer_norm": ("rows", "columns"),
    "reduce_sum": ("rows", "columns"),
    "elementwise": ("elements",),
})  # fmt: skip
"""Sizes of each operator, by the names of `go_rl.costs.operator_sizes`; ``layer_norm`` has no scale
and shift."""
STEPS = ("add", "divide", "exp", "logistic", "maximum", "multiply", "power", "rsqrt", "subtract",
         "tanh", "erf")  # fmt: skip
"""Steps of an ``elementwise`` group, one after the other."""
EPILOGUE = ("bias", "add", "relu", "gelu", "gelu_tanh", "elu", "silu")
"""Steps that a compiler fuses behind one of `FUSED_OPS`: ``bias`` adds a number for each column or
channel, ``add`` another array of the result's shape."""
FUSED_OPS = ("conv2d", "depthwise_conv2d", "matmul")
MAY_BE_ZERO = frozenset({"padding"})


class TaskError(GoRLError):
    """A tensor task is malformed."""


@dataclass(frozen=True)
class TensorTask:
    """Tensor task: an operator with its sizes, whose programs compare. In `go_rl.costs.programs`
    *task*, *tasks* alone mean it; what a measuring worker is asked for is a *request*.

    Raises:
        TaskError: the operator, a size or a step is unknown or wrong.
    """

    op: str
    """Operator, one of `SIZES`."""
    sizes: tuple[int, ...]
    """Sizes in the order of `SIZES`."""
    steps: tuple[str, ...] = ()
    """Steps of an ``elementwise`` group, or of the epilogue of one of `FUSED_OPS`."""

    def __post_init__(self) -> None:
        if self.op not in SIZES:
            raise TaskError(f"unknown operator {self.op!r}{nearest(self.op, SIZES)}")
        names = SIZES[self.op]
        if len(self.sizes) != len(names):
            raise TaskError(f"{self.op} has the sizes {', '.join(names)}, not {self.sizes}")
        for name, size in zip(names, self.sizes, strict=True):
            if type(size) is not int or size < (name not in MAY_BE_ZERO):
                raise TaskError(f"{self.op}: {name} must be a whole number >= 1, not {size!r}")
        fused = self.op in FUSED_OPS
        if not fused and bool(self.steps) != (self.op == "elementwise"):
            raise TaskError(
                f"an elementwise group, and nothing else but {', '.join(FUSED_OPS)}, has steps"
            )
        steps = EPILOGUE if fused else STEPS
        unknown = [step for step in self.steps if step not in steps]
        if unknown:
            raise TaskError(f"{self.op}: unknown step {unknown[0]!r}{nearest(unknown[0], steps)}")

    @property
    def named(self) -> dict[str, int]:
        """Sizes by name."""
        return dict(zip(SIZES[self.op], self.sizes, strict=True))

    @property
    def title(self) -> str:
        """The operator and its sizes, for people."""
        steps = f" {'+'.join(self.steps)}" if self.steps else ""
        return f"{self.op} {'x'.join(map(str, self.sizes))}{steps}"

    @property
    def flops(self) -> int:
        """Floating-point operations, multiplications and additions apart, those of an epilogue left
        out."""
        size = self.named
        if self.op == "matmul":
            return 2 * prod(self.sizes)
        if self.op in ("conv2d", "depthwise_conv2d", "max_pool", "average_pool"):
            window = size["kernel_height"] * size["kernel_width"]
            each = 2 * size["channels"] // size["groups"] if self.op == "conv2d" else 2
            wide = size.get("filters", size["channels"])
            return size["batch"] * prod(self.output_side) * wide * window * each
        return prod(self.sizes) * {"softmax": 5, "layer_norm": 7}.get(self.op, len(self.steps) or 1)

    @property
    def output_side(self) -> tuple[int, int]:
        """Height and width of the result of a window that moves over an image."""
        size = self.named
        high, wide = (
            window_positions(size[side], size[f"kernel_{side}"], size["stride"], size["padding"])
            for side in ("height", "width")
        )
        if min(high, wide) < 1:
            raise TaskError(f"{self.title}: the window is larger than the image")
        return high, wide

    @property
    def workload(self) -> str:
        """Hash that records are kept under."""
        return hashlib.sha256(self.to_json().encode()).hexdigest()[:32]

    def to_json(self) -> str:
        """Return the task as canonical JSON."""
        return canonical_json({"op": self.op, "sizes": self.sizes, "steps": self.steps})

    @staticmethod
    def from_json(text: str) -> TensorTask:
        """Read what `to_json` wrote.

        Raises:
            TaskError: it is no task.
        """
        try:
            document = parse_json(text)
            if set(document) != {"op", "sizes", "steps"}:
                raise ValueError(f"fields {shown(document)}")
            return TensorTask(document["op"], tuple(document["sizes"]), tuple(document["steps"]))
        except (TypeError, ValueError) as error:
            raise TaskError(f"not a task of a tensor program: {error}") from error
