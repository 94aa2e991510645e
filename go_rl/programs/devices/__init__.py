"""Devices known by their data sheets."""

from go_rl.programs.devices.data_sheet import DataSheet, DeviceError
from go_rl.programs.devices.table import device_names, find_device, load_device

__all__ = ["DataSheet", "DeviceError", "device_names", "find_device", "load_device"]
