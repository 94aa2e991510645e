"""Devices that are GPUs of the table of data sheets, which ``learned:gpus`` prices."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache

from go_rl.core import Device, Hardware
from go_rl.core.hardware.rates import rates_of
from go_rl.core.hardware.systems import GPU_DEVICES
from go_rl.costs.devices import DataSheet, DeviceError, find_device

DATA_SHEETS = {"a100": "a100-sxm-80gb"}
"""Names in the table of kinds that are none there, or that name another variant."""
SAME = 1.1
"""Factor up to which a figure of a device and that of the GPU of its name agree."""


@cache
def sheet_of(device: Device) -> DataSheet | None:
    """Return the data sheet by which a device is priced; None: its kind is no GPU of the table, or
    it has another peak or bandwidth of memory than that GPU. Asked for each batch of kernels."""
    sheet = _named(device.kind)
    return None if sheet is None or _other_figures(device, sheet) else sheet


def has_learned_gpus(hardware: Hardware) -> bool:
    """Whether hardware computes in the number format of the user's model and all its devices are
    GPUs of the table: predicted seconds have launches from a host, a roofline has not."""
    return hardware.element_bytes is None and all(map(sheet_of, hardware.devices))


def why_unlearned(hardware: Hardware) -> str:
    """Return a sentence for hardware that names GPUs of the table and is not priced by them; "":
    there is nothing to say."""
    devices = {device.kind: device for device in hardware.devices}
    named = {kind: sheet for kind in devices if (sheet := _named(kind)) is not None}
    if not named or hardware.element_bytes is not None or has_learned_gpus(hardware):
        return ""
    for kind, sheet in named.items():
        if others := _other_figures(devices[kind], sheet):
            field = others[0]
            return (
                f"Operator times are analytical: {field} of {kind} is "
                f"{getattr(devices[kind], field):g}, which that GPU has not."
            )
    others = ", ".join(kind for kind in devices if kind not in named)
    return (
        f"Operator times are analytical on all devices: the table of devices has no {others}, and "
        f"predicted times of {', '.join(named)}, which have a host's launches, do not compare with "
        "a roofline."
    )


def unused_launch(device: Device) -> bool:
    """Whether a GPU of the table states another launch time than its preset has, which predicted
    times do not follow."""
    preset = GPU_DEVICES.get(device.kind)
    return preset is not None and not _agrees(device.launch_seconds, [preset.launch_seconds])


def _named(kind: str) -> DataSheet | None:
    try:
        return find_device(DATA_SHEETS.get(kind, kind))
    except DeviceError:
        return None


def _other_figures(device: Device, sheet: DataSheet) -> list[str]:
    """Fields of a device that are not those of the GPU of its name. A peak may be that of any
    element type."""
    peaks = [sheet.vector_flops, sheet.matrix_flops, *dict(rates_of(device.kind)).values()]
    if device.kind in GPU_DEVICES:
        peaks.append(GPU_DEVICES[device.kind].peak_flops)
    known = {"memory_bandwidth": [sheet.memory_bandwidth], "peak_flops": peaks}
    return [name for name, each in known.items() if not _agrees(getattr(device, name), each)]


def _agrees(figure: float, known: Sequence[float]) -> bool:
    return any(each / SAME <= figure <= each * SAME for each in known)
