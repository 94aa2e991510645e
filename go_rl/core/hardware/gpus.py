"""GPUs by name, such as ``p100x4``: data sheets, and the links between equal ones."""

from __future__ import annotations

from dataclasses import replace

from go_rl.core.hardware.hardware import Device, Hardware
from go_rl.core.hardware.links import Links, Topology
from go_rl.core.hardware.rates import rates_of

PCIE_4 = 24e9, 5e-6
"""Bytes/s and seconds of PCIe 4.0 x16 through the host's memory, one direction."""
_SHEETS = {
    "p100": Device("p100", 10.6e12, 16e9, 732e9, 4e-6, 12e9),
    "v100": Device("v100", 15.7e12, 32e9, 900e9, 4e-6, 12e9),
    "a100": Device("a100", 156e12, 80e9, 2039e9, 3e-6, 24e9),
    "h100": Device("h100", 494e12, 80e9, 3350e9, 3e-6, 48e9),
    "p4": Device("p4", 5.699e12, 8e9, 192e9, 4e-6, 12e9),
    "t4": Device("t4", 8.141e12, 15e9, 320e9, 4e-6, 12e9),
    "l4": Device("l4", 31.334e12, 24e9, 300e9, 3e-6, 24e9),
    "a10": Device("a10", 31.24e12, 24e9, 600e9, 3e-6, 24e9),
    "a6000": Device("a6000", 38.71e12, 48e9, 768e9, 3e-6, 24e9),
    "v100-16gb": Device("v100-16gb", 15.7e12, 16e9, 900e9, 4e-6, 12e9),
    "a100-40gb": Device("a100-40gb", 19.492e12, 40e9, 1555e9, 3e-6, 24e9),
    "a100-80gb": Device("a100-80gb", 19.492e12, 80e9, 1935e9, 3e-6, 24e9),
    "h100-pcie": Device("h100-pcie", 51.2e12, 80e9, 2039e9, 3e-6, 48e9),
    "rtx-3090": Device("rtx-3090", 35.58e12, 24e9, 936e9, 3e-6, 24e9),
    "rtx-4090": Device("rtx-4090", 82.58e12, 24e9, 1008e9, 3e-6, 24e9),
}
"""Vendor data sheets: TF32 dense tensor rate on A100 and H100, fp32 rate on all others."""
GPU_CHIPS = {name: replace(chip, rates=rates_of(name)) for name, chip in _SHEETS.items()}
TENSOR_RATES = ("a100", "h100")
"""GPUs whose rate is that of TF32."""

GPU_LINKS = {
    "p100": Links(Topology.FULL, 16e9, 5e-6),
    "v100": Links(Topology.FULL, 25e9, 5e-6),
    "a100": Links(Topology.FULL, 300e9, 3e-6),
    "h100": Links(Topology.FULL, 450e9, 3e-6),
    "v100-16gb": Links(Topology.FULL, 25e9, 5e-6),
    **dict.fromkeys(("p4", "t4"), Links(Topology.FULL, 12e9, 5e-6)),
    **dict.fromkeys(("l4", "a10", "a6000", "a100-40gb", "a100-80gb", "rtx-3090", "rtx-4090"),
                    Links(Topology.FULL, *PCIE_4)),
    "h100-pcie": Links(Topology.FULL, 48e9, 5e-6),
}  # fmt: skip
"""V100, A100 and H100 of these names over NVLink, one direction; the others over PCIe."""


def gpu(flavour: str, count: int) -> Hardware:
    """Return ``count`` fully connected GPUs of a flavour in `GPU_CHIPS`."""
    rate = f"{GPU_CHIPS[flavour].peak_flops / 1e12:.4g} TFLOP/s"
    form = "TF32" if flavour in TENSOR_RATES else "float32"
    several = f"{count} fully connected" if count > 1 else "one"
    return Hardware(
        name=f"{flavour}x{count}",
        devices=(GPU_CHIPS[flavour],) * count,
        links=GPU_LINKS[flavour],
        description=f"{several} {flavour.upper()} GPU{'s' * (count > 1)}, {rate} in {form} each",
    )
