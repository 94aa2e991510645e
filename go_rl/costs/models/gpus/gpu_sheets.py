"""Devices that are GPUs of the table of data sheets, which ``learned:gpus`` prices."""

from __future__ import annotations

from go_rl.core import Device, Hardware
from go_rl.costs.devices import DataSheet, DeviceError, find_device

DATA_SHEETS = {"a100": "a100-sxm-80gb"}
"""Devices of devices whose kind is no name of the table, or names another variant there."""
SAME_BANDWIDTH = 1.1
"""Factor up to which the memory bandwidths of a device and of the data sheet of its name agree."""


def sheet_of(device: Device) -> DataSheet | None:
    """Return the data sheet by which a device is priced; None: its kind is no GPU of the table, or
    its memory has another bandwidth than that GPU's."""
    try:
        sheet = find_device(DATA_SHEETS.get(device.kind, device.kind))
    except DeviceError:
        return None
    ratio = device.memory_bandwidth / sheet.memory_bandwidth
    return sheet if 1 / SAME_BANDWIDTH <= ratio <= SAME_BANDWIDTH else None


def has_learned_gpus(hardware: Hardware) -> bool:
    """Whether hardware computes in the number format of the user's model and has a GPU of the
    table."""
    return hardware.element_bytes is None and any(map(sheet_of, hardware.devices))
