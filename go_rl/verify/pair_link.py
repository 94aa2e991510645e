"""`pair_route`: the links that carry a tensor from one device to another, straight from the fields
of `Links`. Shares no code with simulators."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from typing import NamedTuple

from go_rl.core.hardware.links import Links, Topology


class PairLink(NamedTuple):
    """Link of an ordered pair of devices."""

    bandwidth: float
    """Bytes/s."""
    latency: float
    """Seconds."""
    channel: tuple[str, int, int]
    """Name of what carries one tensor at a time."""


def pair_route(links: Links, source: int, to: int) -> list[tuple[int, int, PairLink]]:
    """Return the links between two different devices in order, each with its ends."""
    if not links.shape:
        return [(source, to, pair_link(links, source, to))]
    rates = links.bandwidth, links.latency_seconds
    stops = [source, *_stops(links, source, to)]
    return [(a, b, PairLink(*rates, ("link", a, b))) for a, b in pairwise(stops)]


def _stops(links: Links, source: int, to: int) -> Iterator[int]:
    """Devices of a mesh that a tensor comes to: the first coordinate is put right first."""
    here, goal = _coordinates(links.shape, source), _coordinates(links.shape, to)
    for axis, size in enumerate(links.shape):
        up = (goal[axis] - here[axis]) % size
        down = (here[axis] - goal[axis]) % size
        forward = up <= down if links.topology is Topology.TORUS else goal[axis] > here[axis]
        while here[axis] != goal[axis]:
            here[axis] = (here[axis] + (1 if forward else -1)) % size
            number = 0
            for place, extent in zip(here, links.shape, strict=True):
                number = number * extent + place
            yield number


def _coordinates(shape: tuple[int, ...], device: int) -> list[int]:
    found = []
    for extent in reversed(shape):
        device, place = divmod(device, extent)
        found.insert(0, place)
    return found


def pair_link(links: Links, source: int, to: int) -> PairLink:
    """Return the fastest link of two different devices; a group before the links of all."""
    found = PairLink(links.bandwidth, links.latency_seconds, ("link", source, to))
    for number, host in enumerate(links.hosts):
        if source in host:
            found = found._replace(channel=("port", number, 0))
    for number, group in enumerate(links.groups):
        for which, some in enumerate(group.devices):
            if source in some and to in some and group.bandwidth > found.bandwidth:
                own = ("bus", number, which) if group.shared else ("link", source, to)
                found = PairLink(group.bandwidth, group.latency_seconds, own)
    return found
