"""`audit_streams`: the device of each kernel in IREE's streams, held against a plan."""

from __future__ import annotations

import re
from dataclasses import dataclass

from go_rl.core import ExecutionError
from go_rl.core.printable import counted
from go_rl.plans.sinks.iree.transfers import SCOPE
from go_rl.plans.sinks.placed import Placed

_EXECUTE = re.compile(r"stream\.cmd\.execute\b(?:.*?on\(#hal\.device\.affinity<@device_(\d+)>)?")
_NODE = re.compile(rf'"{SCOPE}([^"]*)"')


@dataclass(frozen=True)
class StreamAudit:
    """Kernels of a compiled module."""

    kernels: tuple[tuple[str, int], ...]
    """Node and device of each kernel, in order. A kernel is named by the operator that others were
    joined to."""
    unnamed: int
    """Kernels of no operator, such as those that fill memory."""
    differences: tuple[str, ...]
    """Sentences that name operators; none: every kernel is where the plan puts its operator."""

    def require(self) -> None:
        """Raise an `ExecutionError` that names the operators, if any are elsewhere."""
        if self.differences:
            raise ExecutionError(f"audit: {'; '.join(self.differences)}")


def audit_streams(plan: Placed, text: str) -> StreamAudit:
    """Return the device of each kernel, and what differs from a plan.

    Args:
        plan: what the module was made of.
        text: the module once streams are made, with locations, as ``iree-compile
            --compile-to=stream --mlir-print-debuginfo --mlir-print-local-scope`` prints it.

    Raises:
        ExecutionError: the text has no kernel, or none of the plan's operators.
    """
    home = {str(name): int(device) for name, device in
            zip(plan.graph.names, plan.device, strict=True)}  # fmt: skip
    kernels, unnamed = _kernels(text)
    known = [(node, device) for node, device in kernels if node in home]
    if not known:
        raise ExecutionError(
            f"the text has {counted(len(kernels) + unnamed, 'kernel')}, and none is an operator of "
            f"{plan.graph.name!r}; it must be printed by iree-compile --compile-to=stream "
            "--mlir-print-debuginfo --mlir-print-local-scope"
        )
    return StreamAudit(
        tuple(kernels),
        unnamed,
        tuple(
            f"the kernel of {node!r} is on device {device}; the plan has it on {home[node]}"
            for node, device in known
            if device != home[node]
        ),
    )


def _kernels(text: str) -> tuple[list[tuple[str, int]], int]:
    """Node and device of each kernel; and how many have no node."""
    found, unnamed, device, inside = list[tuple[str, int]](), 0, 0, False
    for line in text.splitlines():
        if (match := _EXECUTE.search(line)) is not None:
            device = int(match[1] or 0)
        inside |= "stream.cmd.dispatch" in line
        if inside and "loc(" in line:
            nodes = _NODE.findall(line)
            found += [(nodes[0], device)] if nodes else []
            unnamed += not nodes
            inside = False
    return found, unnamed
