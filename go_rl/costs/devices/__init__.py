"""Devices known by their data sheets."""

from go_rl.costs.devices.data_sheet import DataSheet, DeviceError
from go_rl.costs.devices.table import assumed, device_names, find_device, load_device, with_launch

__all__ = [
    "DataSheet",
    "DeviceError",
    "assumed",
    "device_names",
    "find_device",
    "load_device",
    "with_launch",
]
