"""`NetworkBuilder`: an operator graph under construction, priced by the table of PyTorch's
operators."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from go_rl.core.graph.element_type import ElementType
from go_rl.graphs.readers.cost import Tensor
from go_rl.graphs.readers.graph_builder import GraphBuilder
from go_rl.graphs.readers.operand import Operand, add_input, add_operator, operator_node
from go_rl.graphs.readers.torch.call import TorchCall
from go_rl.graphs.readers.torch.costs.table import RULES
from go_rl.graphs.readers.torch.geometry import torch_geometry

Shape = tuple[int, ...]
ID_BYTES = 8.0
"""Bytes of a token's number."""
ROTATION_FLOPS = 3.5
"""FLOP an element: two products, a sum, and half a change of sign."""
_SCOPE = re.compile(r"\.(?!\d)")


@dataclass(frozen=True)
class Held:
    """Stored arrays and state that an operator keeps on its device."""

    operands: Mapping[str, str] = field(default_factory=dict)
    """Stored array of each operand that is one, by the name in the operator's schema."""
    others: tuple[str, ...] = ()
    """Stored arrays that are no operand by themselves."""
    state_bytes: float = 0.0
    """Keys and values of earlier tokens."""


NOTHING = Held()


@dataclass(frozen=True)
class Counted:
    """Parts of an operator that are counted otherwise than its operands and result say."""

    num_bytes: float | None = None
    """Read and written; None: all operands and the result."""
    flops: float | None = None
    """None: those of the operator by itself."""
    types: Mapping[str, Tensor] = field(default_factory=dict)
    """Operands as the operator sees them, which arrive as another view or in part."""


PLAIN = Counted()


class NetworkBuilder:
    """Nodes and edges, and the stored arrays that they read."""

    def __init__(
        self,
        builder: GraphBuilder,
        itemsize: float,
        where: str,
        stored_itemsize: Callable[[str, Shape], float] | None = None,
        element: ElementType = ElementType.UNKNOWN,
    ) -> None:
        self.builder = builder
        self.element = element
        self.itemsize = itemsize
        self.where = where
        self._stored_itemsize = stored_itemsize
        self.stored: dict[str, Tensor] = {}
        """Type of every stored array, by the name that it has in safetensors."""

    def array(self, name: str, shape: Shape) -> str:
        """Declare a stored array; one of several readers is declared by each."""
        given = self._stored_itemsize
        self.stored[name] = Tensor(shape, given(name, shape) if given else self.itemsize)
        return name

    def input(self, name: str, shape: Shape, itemsize: float | None = None) -> Operand:
        """Add an input."""
        element = ElementType.INT64 if itemsize == ID_BYTES else self.element
        tensor = Tensor(shape, itemsize or self.itemsize, element)
        return add_input(self.builder, name, tensor, name)

    def add(
        self,
        path: str,
        op: str,
        operands: Mapping[str, Any],
        shape: Shape,
        held: Held = NOTHING,
        counted: Counted = PLAIN,
    ) -> Operand:
        """Add an operator of ATen.

        Args:
            path: module in the model, such as ``model.layers.0.self_attn.q_proj``.
            op: such as ``linear``.
            operands: `Operand`, types without a producer, and settings by the name in its schema.
            shape: of the result.
            held: what the operator keeps.
            counted: what of its cost its operands do not say.
        """
        weights = {key: self.stored[name] for key, name in held.operands.items()}
        arguments = {
            key: each.tensor if isinstance(each, Operand) else each
            for key, each in operands.items()
        }
        arguments |= {**weights, **counted.types}
        result = Tensor(shape, self.itemsize)
        call = TorchCall(f"aten.{op}", f"{self.where}: {path}", arguments, (result,))
        rule = RULES[call.op]
        num_bytes, flops = counted.num_bytes, counted.flops
        if num_bytes is None:
            moved = sum(t.nbytes for t in call.tensors) + result.nbytes
            num_bytes = moved if rule.num_bytes is None else rule.num_bytes(call)
        arrays = {name: self.stored[name] for name in (*held.operands.values(), *held.others)}
        node = operator_node(
            _SCOPE.sub("/", path),
            call.op,
            (rule.kind, float(rule.flops(call) if flops is None else flops), float(num_bytes)),
            [result],
            arrays,
            source=path,
            geometry=torch_geometry(call),
            element_type=self.element,
        )
        if held.state_bytes:
            itemsize = node.weight_itemsize or self.itemsize
            whole = node.weight_bytes + held.state_bytes
            node = replace(node, weight_bytes=whole, weight_itemsize=itemsize)
        read = [each for each in operands.values() if isinstance(each, Operand)]
        return Operand(result, add_operator(self.builder, node, read))

    def linear(
        self, path: str, x: Operand, width: int, bias: bool = False, transposed: bool = False,
        stored: str = "", bias_name: str = "",
    ) -> Operand:  # fmt: skip
        """Add a product with a matrix ``[width, x.shape[-1]]``, or its transpose.

        Args:
            path: module that holds the matrix.
            x: left operand.
            width: of the result.
            bias: whether one is added.
            transposed: whether the matrix is stored the other way round, as in GPT-2.
            stored: array that is the matrix, where it is another module's.
            bias_name: array that is the bias, where it is another module's.
        """
        matrix = (x.shape[-1], width) if transposed else (width, x.shape[-1])
        held = {"weight": stored or self.array(f"{path}.weight", matrix)}
        if bias or bias_name:
            held["bias"] = self.array(bias_name or f"{path}.bias", (width,))
        return self.add(path, "linear", {"input": x}, (*x.shape[:-1], width), Held(held))

    def norm(self, path: str, x: Operand, kind: str) -> Operand:
        """Add a normalisation of the last axis; ``kind`` is a `Norm`."""
        width = x.shape[-1:]
        held = {"weight": self.array(f"{path}.weight", width)}
        if kind == "layer":
            held["bias"] = self.array(f"{path}.bias", width)
        operands = {"input": x, "normalized_shape": list(width)}
        op = f"{kind.partition('-')[0]}_norm"
        return self.add(path, op, operands, x.shape, Held(held))

    def rotate(self, path: str, x: Operand, share: float = 1.0) -> Operand:
        """Add the rotation by position of a share of the channels, as one operator."""
        flops = ROTATION_FLOPS * share * x.tensor.size
        return self.add(path, "mul", {"self": x}, x.shape, counted=Counted(flops=flops))

    def embed(self, path: str, ids: Operand, entries: int, width: int, stored: str = "") -> Operand:
        """Add a look-up in a table ``[entries, width]``, another module's where it is named."""
        table = stored or self.array(f"{path}.weight", (entries, width))
        # The table goes before the indices in the operator's schema.
        held, operands = Held(others=(table,)), {"weight": self.stored[table]}
        return self.add(path, "embedding", {**operands, "indices": ids}, (*ids.shape, width), held)

    def positions(self, path: str, count: int, entries: int, width: int) -> Operand:
        """Add a look-up of the first ``count`` positions."""
        return self.embed(path, Operand(Tensor((count,), ID_BYTES)), entries, width)

    def multiplied(self, path: str, first: Operand, second: Operand) -> Operand:
        """Add the product, element by element, of two tensors."""
        return self.add(path, "mul", {"self": first, "other": second}, first.shape)

    def sum(self, path: str, first: Operand, second: Operand) -> Operand:
        """Add the sum of two tensors."""
        return self.add(path, "add", {"self": first, "other": second}, first.shape)
