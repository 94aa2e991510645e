"""`pair_link`: the link that carries a tensor from one device to another, straight from the fields
of `Links`. Shares no code with simulators."""

from __future__ import annotations

from typing import NamedTuple

from go_rl.core.hardware.links import Links


class PairLink(NamedTuple):
    """Link of an ordered pair of devices."""

    bandwidth: float
    """Bytes/s."""
    latency: float
    """Seconds."""
    channel: tuple[str, int, int]
    """Name of what carries one tensor at a time."""


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
