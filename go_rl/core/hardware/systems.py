"""Systems that people own, by name: GPUs in hosts, and hosts joined by a network.

Devices are those of vendors' data sheets. Rates of links are what is left of the nominal ones, one
direction: NVLink 2 of V100 25 GB/s a pair, NVLink 3 and 4 through a switch 300 and 450 GB/s, PCIe
4.0 x16 24 GB/s through the host's memory, Ethernet of 10 and 100 Gbit/s 1.2 and 12 GB/s,
Thunderbolt 4 3 GB/s, a TPU's links 45 GB/s (v4) and 50 GB/s (v5e). Our assumptions: latencies, and
that a host has one port to the network.
"""

from __future__ import annotations

from dataclasses import replace

from go_rl.core.hardware.gpus import PCIE_4, gpu
from go_rl.core.hardware.hardware import Device, Hardware
from go_rl.core.hardware.links import LinkGroup, Links, Topology
from go_rl.core.hardware.rates import rates_of

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
