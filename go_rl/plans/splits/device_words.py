"""Devices as other tools write them: ``1``, ``cuda:1``, ``CUDA1``, ``GPU.1``, ``cpu``, ``disk``."""

from __future__ import annotations

import re

from go_rl.core import Hardware, SplitError
from go_rl.core.files.strict_json import shown

NOWHERE_TO_RUN = ("disk", "meta")
"""Devices that hold weights and run nothing."""
KINDS = frozenset({"accelerator", "chip", "cpu", "cuda", "device", "gpu", "hip", "metal", "mps",
                   "npu", "rocm", "stage", "sycl", "tpu", "vulkan", "xpu"})  # fmt: skip
"""Kinds of devices in the words of other tools."""
_WORD = re.compile(r"([a-z]+)?[ .:_-]?(\d{1,6})?")


def device_of(word: object, hardware: Hardware, where: str) -> int:
    """Return the index of the device that a word names.

    Args:
        word: an index, or a kind with an index behind it (without one: the first of its kind).
        hardware: the devices; accelerators are counted apart from host processors.
        where: beginning of the message, such as ``the device of 'lm_head'``.

    Raises:
        SplitError: no device of the hardware has this name.
    """
    if type(word) is int:
        return _checked(word, 0, hardware.num_devices, hardware, where)
    match = _WORD.fullmatch(word.lower()) if isinstance(word, str) and word else None
    known = {None, *KINDS, *NOWHERE_TO_RUN, *(kind.lower() for kind in hardware.kinds)}
    if match is None or match[1] not in known:
        raise SplitError(
            f"{where} must be an index or a name such as 'cuda:1' or 'GPU.1', not {shown(word)}"
        )
    kind, index = match[1], int(match[2] or 0)
    if kind in NOWHERE_TO_RUN:
        raise SplitError(
            f"{where} is {word!r}: nothing runs there, weights only wait. Name a device of "
            f"{hardware.name!r}"
        )
    if kind != "cpu":
        return _checked(index, 0, hardware.num_devices, hardware, where)
    if hardware.num_accelerators == hardware.num_devices:
        raise SplitError(
            f"{where} is {word!r}, and {hardware.name!r} has no CPU among its devices, which are "
            f"{', '.join(hardware.kinds)}"
        )
    first = hardware.num_accelerators
    return _checked(first + index, first, hardware.num_devices, hardware, where)


def _checked(index: int, first: int, end: int, hardware: Hardware, where: str) -> int:
    if first <= index < end:
        return index
    raise SplitError(f"{where} is {index}; devices of {hardware.name!r} are {first}..{end - 1}")
