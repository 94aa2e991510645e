"""Topology and assignment of Shardy's MPMD: named computations to meshes, one mesh a device."""

from __future__ import annotations

from go_rl.plans.sinks.hf_device_map import module_devices
from go_rl.plans.sinks.placed import Placed


def render_shardy(plan: Placed) -> str:
    """Return a line with the topology and one with the assignment of modules, which are the names
    that ``mpmd.named_computation`` is to give them.

    Raises:
        SplitError: a module with weights is on several devices, or has a name that the option
            cannot hold.
    """
    devices = range(plan.hardware.num_devices)
    meshes = ", ".join(f'<"d{device}" : <["x"=1]>>' for device in devices)
    found = module_devices(plan)
    wrong = next((name for name in found if set(name) & set("@,= \n")), None)
    if wrong is not None:
        raise plan.error(f"cannot say module {wrong!r}: it has one of @ , = or a blank")
    entries = ",".join(f"{name}@d{device}" for name, device in found.items())
    return f"topology=#mpmd.topology<{meshes}>\nassignment={entries}\n"
