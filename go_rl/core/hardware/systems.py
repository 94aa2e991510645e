"""Hardware that people own, by name: GPUs such as ``p100x4`` by their data sheets, hosts with
several, and hosts joined by a network."""

from __future__ import annotations

from dataclasses import replace

from go_rl.core.hardware.hardware import Device, Hardware
from go_rl.core.hardware.links import LinkGroup, Links, Topology
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
GPU_DEVICES = {name: replace(gpu, rates=rates_of(name)) for name, gpu in _SHEETS.items()}
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
    """Return ``count`` fully connected GPUs of a flavour in `GPU_DEVICES`."""
    rate = f"{GPU_DEVICES[flavour].peak_flops / 1e12:.4g} TFLOP/s"
    form = "TF32" if flavour in TENSOR_RATES else "float32"
    several = f"{count} fully connected" if count > 1 else "one"
    return Hardware(
        name=f"{flavour}x{count}",
        devices=(GPU_DEVICES[flavour],) * count,
        links=GPU_LINKS[flavour],
        description=f"{several} {flavour.upper()} GPU{'s' * (count > 1)}, {rate} in {form} each",
    )


ETHERNET_10, ETHERNET_100 = (1.2e9, 30e-6), (12e9, 10e-6)
THUNDERBOLT_4 = 3e9, 50e-6
"""Bytes/s and seconds of links."""
M2_ULTRA = Device("m2-ultra", 27.2e12, 192e9, 800e9, 5e-6, 400e9)
"""Mac Studio with 76 GPU cores; memory is shared with the host."""
TPU_V4 = Device("tpu-v4", 275e12, 32e9, 1228e9, 1e-6, 16e9, rates=rates_of("tpu-v4"))
TPU_V5E = Device("tpu-v5e", 197e12, 16e9, 819e9, 1e-6, 16e9, rates=rates_of("tpu-v5e"))
"""Chips, bf16: TPU v4 (Jouppi et al., ISCA 2023) with its two cores as one, and v5e."""
TPU_HOP = 1e-6
"""Seconds from a chip to the next."""


def _systems() -> dict[str, Hardware]:
    found = [
        _called("dgx-a100", "8 A100 behind a switch of NVLink", gpu("a100", 8)),
        _called("dgx-h100", "8 H100 behind a switch of NVLink", gpu("h100", 8)),
        _called("2x4090", "two RTX 4090 in one host, PCIe 4.0", gpu("rtx-4090", 2)),
        Hardware(
            "4090+3090", (gpu("rtx-4090", 1).devices[0], gpu("rtx-3090", 1).devices[0]),
            Links(Topology.FULL, *PCIE_4), None,
            "an RTX 4090 and an RTX 3090 in one host, PCIe 4.0",
        ),
        joined_hosts(
            "two-hosts-v100", "two hosts of 4 V100 with NVLink, 10 Gbit/s Ethernet between",
            [("NVLink", gpu("v100", 4)), ("NVLink", gpu("v100", 4))], ETHERNET_10,
        ),
        joined_hosts(
            "two-hosts-mixed",
            "a host of 4 A100 with NVLink, one of 4 P100 on PCIe, 100 Gbit/s Ethernet between",
            [("NVLink", gpu("a100", 4)), ("PCIe", gpu("p100", 4))], ETHERNET_100,
        ),
        Hardware(
            "mac-studio-pair", (M2_ULTRA,) * 2, Links(Topology.FULL, *THUNDERBOLT_4), None,
            "two Mac Studio M2 Ultra, 192 GB each, Thunderbolt 4 between",
        ),
        Hardware(
            "tpu-v4-16", (TPU_V4,) * 8, Links(Topology.MESH, 45e9, TPU_HOP, shape=(2, 2, 2)), None,
            "a slice of TPU v4: 16 cores on 8 chips, a mesh of 2 x 2 x 2",
        ),
        Hardware(
            "tpu-v5e-16", (TPU_V5E,) * 16, Links(Topology.MESH, 50e9, TPU_HOP, shape=(4, 4)), None,
            "a slice of TPU v5e: 16 chips, a mesh of 4 x 4",
        ),
        Hardware(
            "tpu-v5e-256", (TPU_V5E,) * 256,
            Links(Topology.TORUS, 50e9, TPU_HOP, shape=(16, 16)), None,
            "a pod of TPU v5e: 256 chips, a torus of 16 x 16",
        ),
    ]  # fmt: skip
    return {system.name: system for system in found}


def _called(name: str, description: str, hardware: Hardware) -> Hardware:
    return replace(hardware, name=name, description=description)


def joined_hosts(
    name: str, description: str, hosts: list[tuple[str, Hardware]], network: tuple[float, float]
) -> Hardware:
    """Return hosts, each with the class of its own links, and one port each to a network.

    Args:
        name: of the whole.
        description: words shown to users.
        hosts: the class of a host's links, and its devices; hosts of one class have equal links.
        network: bytes/s and seconds.
    """
    members: dict[str, list[tuple[int, ...]]] = {}
    rates, devices, ports = {}, (), ()
    for within, host in hosts:
        inside = tuple(range(len(devices), len(devices) + host.num_devices))
        devices, ports = devices + host.devices, (*ports, inside)
        if len(inside) > 1:
            members.setdefault(within, []).append(inside)
            rates[within] = host.links.bandwidth, host.links.latency_seconds
    groups = tuple(LinkGroup(each, tuple(some), *rates[each]) for each, some in members.items())
    return Hardware(name, devices, Links(Topology.FULL, *network, groups, ports), None, description)


SYSTEMS = _systems()
"""Systems that people own, by name."""
