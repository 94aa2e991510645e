"""`Links`: how devices are joined, and the link of each pair of them.

Links of unlike classes, such as NVLink within a pair of GPUs, PCIe within a host and Ethernet
between hosts, are those of fully connected devices with `LinkGroup`s: a pair has the fastest link
that joins it. On a mesh or torus neighbours have links, and a tensor for a farther device passes
through those between (`go_rl.core.hardware.mesh`).
"""

from __future__ import annotations

import enum
from collections.abc import Iterator
from dataclasses import dataclass
from math import prod

import numpy as np
from jaxtyping import Float64, Int64

from go_rl.core.errors import HardwareError
from go_rl.core.hardware.mesh import mesh_routes

SLOWEST, FASTEST = 1e-6, 1e30
"""Rates of devices and links, FLOP/s and bytes/s, so that seconds and their sums are finite."""
LONGEST_SECONDS = 1e6
"""Largest cost of one launch or message, seconds: sums over any model stay finite."""


class Topology(enum.StrEnum):
    """Topologies of links between devices."""

    RING = "ring"
    """Device i sends to device i + 1; data for a farther device passes through those between."""
    FULL = "full"
    """Every pair of devices has a link of its own."""
    TREE = "tree"
    """A complete binary tree in heap order: the parent of device i > 0 is device (i - 1) // 2."""
    MESH = "mesh"
    """A grid of one to three dimensions: neighbours have a link each way."""
    TORUS = "torus"
    """A mesh whose borders are joined: the last device of a line has links to the first."""


MESHES = (Topology.MESH, Topology.TORUS)
MOST_DIMENSIONS = 3
"""Dimensions of a mesh."""


@dataclass(frozen=True)
class LinkGroup:
    """Links of one class among some devices."""

    name: str
    """Class, such as ``NVLink``."""
    devices: tuple[tuple[int, ...], ...]
    """Sets of devices; all pairs within a set have such a link."""
    bandwidth: float
    """Bytes/s in one direction."""
    latency_seconds: float = 0.0
    """Seconds from the first byte sent to the first byte received."""
    shared: bool = False
    """Whether the devices of a set send in turns, as on a bus; else each pair has its own link."""

    def __post_init__(self) -> None:
        _check_rates(f"links: group {self.name!r}", self.bandwidth, self.latency_seconds)
        seen: set[int] = set()
        for members in self.devices:
            if len(members) < 2:
                raise HardwareError(
                    f"links: group {self.name!r}: a set joins at least two devices, not "
                    f"{len(members)}"
                )
            for device in members:
                if device in seen:
                    raise HardwareError(
                        f"links: group {self.name!r}: device {device} is in it twice"
                    )
                seen.add(device)
        if not self.devices:
            raise HardwareError(f"links: group {self.name!r} joins no devices")


@dataclass(frozen=True)
class Links:
    """The links between devices."""

    topology: Topology
    bandwidth: float
    """Bytes/s of one link in one direction; of pairs that no group joins."""
    latency_seconds: float = 0.0
    """Seconds from the first byte sent to the first byte received."""
    groups: tuple[LinkGroup, ...] = ()
    """Links of other classes; of several that join a pair, that with the most bytes/s counts."""
    hosts: tuple[tuple[int, ...], ...] = ()
    """Sets of devices that share one port to all others: one of them sends at a time."""
    shape: tuple[int, ...] = ()
    """Devices along each dimension of a mesh or torus; device 0 is a corner, and the last
    coordinate counts first."""

    def __post_init__(self) -> None:
        _check_rates("links", self.bandwidth, self.latency_seconds)
        self._check_shape()
        if self.groups and self.topology is not Topology.FULL:
            raise HardwareError(
                f"links: groups are for fully connected devices, not for a {self.topology}; "
                "leave them out"
            )
        if self.hosts and self.topology is not Topology.FULL:
            raise HardwareError(
                f"links: hosts are for fully connected devices, not for a {self.topology}; "
                "leave them out"
            )
        members = [device for host in self.hosts for device in host]
        if twice := [device for device in members if members.count(device) > 1]:
            raise HardwareError(f"links: device {twice[0]} is on two hosts")
        names = [group.name for group in self.groups]
        if same := [name for name in names if names.count(name) > 1]:
            raise HardwareError(f"links: two groups are called {same[0]!r}")

    def _check_shape(self) -> None:
        meshed = self.topology in MESHES
        if self.shape and not meshed:
            raise HardwareError(
                f"links: shape is for a mesh or torus, not for {self.topology} links; leave it out"
            )
        if meshed and not 1 <= len(self.shape) <= MOST_DIMENSIONS:
            raise HardwareError(
                f"links: a {self.topology} needs shape, the devices along each of 1 to "
                f"{MOST_DIMENSIONS} dimensions, such as [4, 4]; it has {len(self.shape)}"
            )
        if any(size < 1 for size in self.shape):
            raise HardwareError(f"links: shape {list(self.shape)}: every number must be >= 1")

    @property
    def uniform(self) -> bool:
        """Whether all pairs have equal links of their own."""
        return not self.groups and not self.hosts and self.topology not in MESHES

    def check_count(self, devices: int) -> None:
        """Raise a `HardwareError` when a mesh has other than ``devices`` places."""
        if self.shape and prod(self.shape) != devices:
            grid = " x ".join(map(str, self.shape))
            raise HardwareError(
                f"links: a {self.topology} of {grid} joins {prod(self.shape)} devices, and there "
                f"are {devices}; make the numbers in shape multiply to {devices}"
            )

    def members(self) -> Iterator[tuple[str, int]]:
        """Yield every device that a group or host names, and what names it."""
        for group in self.groups:
            yield from ((f"group {group.name!r}", d) for some in group.devices for d in some)
        yield from (("hosts", device) for host in self.hosts for device in host)


@dataclass(frozen=True, eq=False)
class LinkTable:
    """The link of each ordered pair of ``D`` devices, from the first to the second."""

    bandwidth: Float64[np.ndarray, "D D"]
    """[D, D] bytes/s; inf on the diagonal."""
    latency: Float64[np.ndarray, "D D"]
    """[D, D] seconds, of the whole route; 0 on the diagonal."""
    hop: Int64[np.ndarray, "D D"]
    """[D, D] device that the first sends to when the second is the destination: the second, or
    on a mesh the next one on the route to it."""
    most_hops: int
    """Links on the longest route."""
    channel: Int64[np.ndarray, "D D"]
    """[D, D] number of what carries one tensor at a time from the first device, on the first link
    of the route; pairs may share one."""
    channels: int
    """Their number, those included that no pair uses."""
    mean_bandwidth: float
    """Bytes/s that take as long as a byte takes on average over all pairs."""
    mean_latency: float
    """Seconds, the mean over all pairs."""

    @property
    def scale(self) -> Float64[np.ndarray, "D D"]:
        """[D, D] seconds of a byte over those at `mean_bandwidth`."""
        return self.mean_bandwidth / self.bandwidth

    @property
    def extra(self) -> Float64[np.ndarray, "D D"]:
        """[D, D] seconds to add to a transfer that takes s seconds on a mean link, latency
        included, after it was multiplied by `scale`."""
        return self.latency - self.mean_latency * self.scale


def link_table(links: Links, devices: int) -> LinkTable:
    """Return the links of all pairs of fully connected devices, and of devices on a mesh."""
    if links.topology in MESHES:
        return _mesh_table(links)
    own = np.arange(devices * devices).reshape(devices, devices)
    bandwidth, latency = (
        np.full(own.shape, rate) for rate in (links.bandwidth, links.latency_seconds)
    )
    channel, channels = own.copy(), own.size
    for host in links.hosts:
        channel[list(host)], channels = channels, channels + 1
    for group in sorted(links.groups, key=lambda each: each.bandwidth):
        for some in group.devices:
            inside = np.ix_(some, some)
            faster = group.bandwidth > bandwidth[inside]
            carried = np.full(faster.shape, channels) if group.shared else own[inside]
            channels += group.shared
            bandwidth[inside] = np.where(faster, group.bandwidth, bandwidth[inside])
            latency[inside] = np.where(faster, group.latency_seconds, latency[inside])
            channel[inside] = np.where(faster, carried, channel[inside])
    np.fill_diagonal(bandwidth, np.inf)
    np.fill_diagonal(latency, 0.0)
    hop = np.broadcast_to(np.arange(devices), own.shape)
    return LinkTable(
        bandwidth, latency, hop, 1, channel, channels, *_means(links, bandwidth, latency)
    )


def _mesh_table(links: Links) -> LinkTable:
    hop, hops, port, ports = mesh_routes(links.shape, links.topology is Topology.TORUS)
    bandwidth = np.full(hop.shape, links.bandwidth)
    np.fill_diagonal(bandwidth, np.inf)
    latency = hops * links.latency_seconds
    channel = ports * np.arange(len(hop))[:, None] + port
    return LinkTable(
        bandwidth, latency, hop, max(int(hops.max()), 1), channel, ports * len(hop),
        *_means(links, bandwidth, latency),
    )  # fmt: skip


def _means(
    links: Links, bandwidth: Float64[np.ndarray, "D D"], latency: Float64[np.ndarray, "D D"]
) -> tuple[float, float]:
    """Bytes/s and seconds of a mean link; exactly those of all where all are equal."""
    devices = len(bandwidth)
    if links.uniform or devices == 1:
        return links.bandwidth, links.latency_seconds
    pairs = devices * (devices - 1)
    return pairs / float((1 / bandwidth).sum()), float(latency.sum()) / pairs


def check_rate(where: str, name: str, rate: float) -> None:
    """Raise a `HardwareError` for a rate that is no number in reach."""
    if not SLOWEST <= rate <= FASTEST:
        raise HardwareError(
            f"{where}: {name} must be a number from {SLOWEST:g} to {FASTEST:g}, in SI units, not "
            f"{rate!r}"
        )


def _check_rates(where: str, bandwidth: float, latency: float) -> None:
    check_rate(where, "bandwidth", bandwidth)
    if not 0 <= latency <= LONGEST_SECONDS:
        raise HardwareError(f"{where}: latency_seconds must be a number 0 to {LONGEST_SECONDS:g}")
