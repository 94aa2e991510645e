"""Kernels that onnxruntime ran, from the file of its profiler (`read_profile`), and those of each
operator of an ONNX model (`OperatorRuns`)."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import onnx

from go_rl.core import ExecutionError
from go_rl.core.files.strict_json import read_json
from go_rl.plans.audit.operators import Fates, operator_fates

KERNEL = "_kernel_time"
"""Ends the name of the event of a kernel."""


@dataclass(frozen=True)
class Kernel:
    """A kernel that ran."""

    name: str
    """Name of its node in the optimised model, or ``TYPE_NUMBER`` of one without a name."""
    op_type: str
    provider: str
    """Execution provider, such as ``CUDAExecutionProvider``."""
    runs: int
    """Number of runs of the kernel."""
    process: int
    """Number of the process."""


def read_profile(path: str | Path) -> tuple[Kernel, ...]:
    """Return the kernels of a profile, in the order in which they first ran.

    Raises:
        ExecutionError: the file cannot be read, is no profile of onnxruntime, or holds no kernel.
    """
    try:
        events = read_json(path)
    except OSError as error:
        raise ExecutionError(f"{path}: cannot be read ({error.strerror or error})") from error
    except ValueError as error:
        raise ExecutionError(
            f"{path}: is no whole profile of onnxruntime ({error}); session.end_profiling() "
            "completes one"
        ) from error
    if not isinstance(events, list):
        raise ExecutionError(f"{path}: is no profile of onnxruntime, which is a list of events")
    runs = Counter(kernel for event in events if (kernel := _kernel(event)) is not None)
    if not runs:
        raise ExecutionError(
            f"{path}: holds no kernel; set enable_profiling of SessionOptions, run the session, "
            "and end it with session.end_profiling()"
        )
    return tuple(Kernel(*key[:3], count, key[3]) for key, count in runs.items())


def _kernel(event: Any) -> tuple[str, str, str, int] | None:
    """Name, type, provider and process of an event; None: it is of no kernel."""
    if not isinstance(event, dict) or event.get("cat") != "Node":
        return None
    name, args = str(event.get("name", "")), event.get("args")
    if not name.endswith(KERNEL) or not isinstance(args, dict) or "provider" not in args:
        return None
    process = event.get("pid")
    return (
        name.removesuffix(KERNEL), str(args.get("op_name", "")), str(args["provider"]),
        process if isinstance(process, int) else 0,
    )  # fmt: skip


@dataclass(frozen=True)
class OperatorRuns:
    """A model's operators, by their numbers, in a session of onnxruntime that ran."""

    fates: Fates
    ran: Mapping[int, tuple[Kernel, ...]]
    """Kernels of the optimised model that ran, by their numbers; several where a name is not
    unique."""
    added: tuple[str, ...]
    """Names of kernels that compute no operator, such as changes of layout."""

    def of(self, operator: int) -> list[Kernel]:
        """Return the kernels that ran for an operator."""
        places = self.fates.kernels.get(operator, ())
        return [kernel for place in places for kernel in self.ran.get(place, ())]

    def shares(self, operator: int) -> bool:
        """Return whether the kernels of an operator compute others, too."""
        places = self.fates.kernels.get(operator, ())
        return any(len(self.fates.joined[place]) > 1 for place in places)


def operator_runs(
    model: onnx.GraphProto, optimised: onnx.GraphProto, profile: Sequence[Kernel]
) -> OperatorRuns:
    """Return the kernels that ran for each operator.

    Args:
        model: as it was loaded.
        optimised: as it ran; the model itself where that is not known, so that only operators with
            kernels of their own are found.
        profile: see `read_profile`.
    """
    fates = operator_fates(model, optimised)
    added = [node.name or node.op_type for place, node in enumerate(optimised.node)
             if place not in fates.joined]  # fmt: skip
    return OperatorRuns(fates, _ran(optimised.node, profile), tuple(added))


def _ran(
    nodes: Sequence[onnx.NodeProto], profile: Sequence[Kernel]
) -> dict[int, tuple[Kernel, ...]]:
    """Kernels that ran for each node of a main graph. onnxruntime calls a node without a name by
    its type and a number that rises with its place."""
    named: dict[tuple[str, str], list[Kernel]] = defaultdict(list)
    numbered: dict[str, list[tuple[int, Kernel]]] = defaultdict(list)
    for kernel in profile:
        named[kernel.name, kernel.op_type].append(kernel)
        word, _, number = kernel.name.rpartition("_")
        if word == kernel.op_type and number.isdecimal():
            numbered[word].append((int(number), kernel))
    unnamed = {word: iter(sorted(found, key=lambda pair: pair[0]))
               for word, found in numbered.items()}  # fmt: skip
    found: dict[int, tuple[Kernel, ...]] = {}
    for place, node in enumerate(nodes):
        if node.name:
            kernels = named[node.name, node.op_type]
        else:
            following = next(unnamed.get(node.op_type, iter(())), None)
            kernels = [] if following is None else [following[1]]
        if kernels:
            found[place] = tuple(kernels)
    return found
