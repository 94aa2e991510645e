"""`audit_session`: the execution provider of each operator in one session, held against a plan."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import onnx

from go_rl.core import ExecutionError, Hardware, OpGraph, Plan
from go_rl.core.errors import nearest
from go_rl.core.printable import listed
from go_rl.graphs.readers.onnx.load import load_whole
from go_rl.graphs.readers.onnx.structure import graphs
from go_rl.objectives.makespan.choices import NOWHERE
from go_rl.plans.audit.profile import Kernel, OperatorRuns, operator_runs
from go_rl.plans.sinks.placed import placed
from go_rl.plans.splits.onnx_stages import check_same_model, places
from go_rl.plans.splits.split import SplitContext

CPU = "CPUExecutionProvider"
END = "ExecutionProvider"
PROVIDERS = (
    "Azure", "CANN", "CPU", "CUDA", "CoreML", "Dml", "Dnnl", "Js", "MIGraphX", "Nnapi",
    "NvTensorRTRTX", "OpenVINO", "QNN", "Rknpu", "Tensorrt", "VSINPU", "VitisAI", "WebGpu", "WebNN",
    "Xnnpack",
)  # fmt: skip
"""Names of onnxruntime's execution providers without their end."""


@dataclass(frozen=True)
class SessionAudit:
    """Operators of a model in one session of onnxruntime."""

    providers: Mapping[str, int]
    """Operators on each execution provider."""
    joined: Mapping[str, tuple[str, ...]]
    """Operators that each kernel computes, of kernels that compute several."""
    folded: tuple[str, ...]
    """Operators of constants, computed when the model was loaded."""
    unseen: tuple[str, ...]
    """Operators without a kernel of their own, where the optimised model is not known."""
    differences: tuple[str, ...]
    """Sentences that name operators; none: every operator that was seen ran where the plan has
    it."""
    notes: tuple[str, ...]

    def require(self) -> None:
        """Raise an `ExecutionError` that names the operators, if any ran elsewhere."""
        if self.differences:
            raise ExecutionError(f"audit: {'; '.join(self.differences)}")

    def to_json(self) -> dict[str, Any]:
        """Return one JSON object."""
        return asdict(self)


def audit_session(
    plan: Plan,
    graph: OpGraph,
    model: str | Path,
    profile: Sequence[Kernel],
    optimised: str | Path | None = None,
    providers: Mapping[int, str] | None = None,
) -> SessionAudit:
    """Return where the operators of a model ran, and what differs from a plan.

    Args:
        plan: for ``graph``.
        graph: of the model.
        model: its ONNX file.
        profile: see `read_profile`.
        optimised: the session's optimised model, without which operators in joined kernels are
            not seen.
        providers: execution provider by device, ``CUDA`` or ``CUDAExecutionProvider``. Without
            one, a CPU is `CPU`, and any other device is any other provider.

    Raises:
        ExecutionError: the profile, or the optimised model, is another model's; an unknown provider
            or device.
        PlanError: the plan is a failure, or of another graph.
        ReadError: a model cannot be read.
        SplitError: the model is not the graph's.
    """
    what = placed("audit", plan, graph)
    setting = SplitContext(graph, what.hardware, str(model))
    file, place = load_whole(model), places(graph)
    check_same_model(setting, file, place)
    ran = file
    if optimised is not None:
        ran = load_whole(optimised)
    runs = operator_runs(file.graph, ran.graph, profile)
    _check_same_session(ran, runs, profile, str(model), optimised)
    wanted = _wanted(what.hardware, providers or {})
    devices: dict[int, set[int]] = {}
    for node in np.flatnonzero((place != NOWHERE) & what.fixed).tolist():
        devices.setdefault(int(place[node]), set()).add(int(plan.device[node]))
    names = _names(file.graph, graph, place)
    seen = {n: runs.of(n) for n in sorted(runs.fates.kernels)}
    return SessionAudit(
        Counter(kernels[0].provider for kernels in seen.values() if kernels),
        _joined(runs, names, ran),
        tuple(names[n] for n in sorted(runs.fates.folded)) if optimised is not None else (),
        tuple(names[n] for n, each in seen.items() if not each) if optimised is None else (),
        _differences(seen, devices, wanted, names, optimised is not None),
        _notes(devices, wanted),
    )  # fmt: skip


def _check_same_session(
    ran: onnx.ModelProto,
    runs: OperatorRuns,
    profile: Sequence[Kernel],
    model: str,
    optimised: str | Path | None,
) -> None:
    if not runs.ran:
        raise ExecutionError(
            f"the profile is of another model: none of its {len(profile)} kernels, such as "
            f"{profile[0].name!r}, is a node of {optimised or model}"
        )
    if optimised is None:
        return
    if not any(len(kernels) for kernels in runs.fates.kernels.values()):
        raise ExecutionError(f"{optimised}: is not made of {model}: no tensor is in both")
    known = {node.name for each in graphs(ran) for node in each.node}
    strange = [
        kernel.name
        for kernel in profile
        if kernel.name not in known and not kernel.name.startswith(f"{kernel.op_type}_")
    ]
    if strange:
        raise ExecutionError(
            f"the profile is of another session than {optimised}, which has no node "
            f"{listed(strange)}"
        )


def _names(model: onnx.GraphProto, graph: OpGraph, place: np.ndarray) -> list[str]:
    """Names of operators: those of the graph's nodes, else of the file."""
    found = [node.name or next((o for o in node.output if o), "") for node in model.node]
    for node in np.flatnonzero(place != NOWHERE)[::-1].tolist():
        number = int(place[node])
        found[number] = model.node[number].name or str(graph.names[node])
    return found


def _wanted(hardware: Hardware, providers: Mapping[int, str]) -> list[str | None]:
    """Provider of each device; None: any but the CPU's."""
    found = [CPU if device.is_cpu else None for device in hardware.devices]
    for device, word in providers.items():
        if not 0 <= device < len(found):
            raise ExecutionError(
                f"provider of device {device}: devices of {hardware.name!r} are 0..{len(found) - 1}"
            )
        known = {name.lower(): name for name in PROVIDERS}
        short = known.get(word.removesuffix(END).lower())
        if short is None:
            raise ExecutionError(
                f"no execution provider {word!r}{nearest(word.removesuffix(END), PROVIDERS)}"
            )
        found[device] = f"{short}{END}"
    return found


def _joined(
    runs: OperatorRuns, names: Sequence[str], ran: onnx.ModelProto
) -> dict[str, tuple[str, ...]]:
    nodes = ran.graph.node
    return {
        nodes[kernel].name or nodes[kernel].output[0]: tuple(names[n] for n in operators)
        for kernel, operators in runs.fates.joined.items()
        if len(operators) > 1
    }


def _differences(
    seen: Mapping[int, Sequence[Kernel]],
    devices: Mapping[int, set[int]],
    wanted: Sequence[str | None],
    names: Sequence[str],
    complete: bool,
) -> tuple[str, ...]:
    """Sentences, operators of one difference together."""
    found: dict[str, list[str]] = {}
    for operator, kernels in seen.items():
        if not kernels and complete:
            found.setdefault("did not run", []).append(names[operator])
        for device in sorted(devices.get(operator, ())):
            for provider in sorted({kernel.provider for kernel in kernels}):
                if _is_on(provider, wanted[device]):
                    continue
                right = wanted[device] or f"a provider other than {CPU}"
                what = f"ran on {provider}; the plan has device {device}, which is {right}"
                found.setdefault(what, []).append(names[operator])
    return tuple(
        f"{_counted(operators)} {listed(operators)} {what}" for what, operators in found.items()
    )


def _is_on(provider: str, wanted: str | None) -> bool:
    return provider == wanted or (wanted is None and provider != CPU)


def _counted(operators: Sequence[str]) -> str:
    return "operator" if len(operators) == 1 else f"{len(operators)} operators"


def _notes(devices: Mapping[int, set[int]], wanted: Sequence[str | None]) -> tuple[str, ...]:
    used = sorted(set().union(*devices.values()))
    groups: dict[str | None, list[int]] = {}
    for device in used:
        groups.setdefault(wanted[device], []).append(device)
    return tuple(
        f"devices {', '.join(map(str, same))} of the plan are one to a session, "
        f"{provider or f'a provider other than {CPU}'}: it cannot tell them apart"
        for provider, same in groups.items()
        if len(same) > 1
    )
