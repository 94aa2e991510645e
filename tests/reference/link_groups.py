"""Random links: of unlike classes, and those of meshes and tori."""

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from go_rl.core import LinkGroup, Links, Problem, Topology

SHAPES = [(1,), (2,), (5,), (2, 2), (3, 4), (1, 6), (2, 3, 2), (4, 4, 4), (2, 2, 2), (5, 5)]
"""Of meshes and tori."""


def random_links(seed: int, devices: int) -> Links:
    """Links with up to three groups, some of them buses, and hosts with one port or none."""
    if devices == 1:
        return Links(Topology.FULL, 1.0)
    rng = np.random.default_rng(seed)
    groups = tuple(
        LinkGroup(
            f"class {i}", _sets(rng, devices), float(rng.choice([0.25, 0.5, 2.0, 4.0])),
            float(rng.choice([0.0, 0.5, 1.0])), bool(rng.integers(2)),
        )
        for i in range(int(rng.integers(1, 4)))
    )  # fmt: skip
    hosts = _sets(rng, devices) if rng.integers(2) else ()
    return Links(Topology.FULL, 1.0, float(rng.integers(2)), groups, hosts)


def random_mesh(seed: int, devices: int) -> Links:
    """A mesh or torus of so many devices."""
    rng = np.random.default_rng(seed)
    shapes = [shape for shape in SHAPES if np.prod(shape) == devices] + [(devices,)]
    return Links(
        Topology.TORUS if rng.integers(2) else Topology.MESH,
        float(rng.choice([0.25, 1.0, 4.0])),
        float(rng.choice([0.0, 0.5, 1.0])),
        shape=shapes[int(rng.integers(len(shapes)))],
    )


def with_random_links(
    seed: int, problem: Problem, draw: Callable[[int, int], Links] = random_links
) -> Problem:
    """The problem on devices that are joined by such links."""
    links = draw(seed, problem.hardware.num_devices)
    return replace(problem, hardware=replace(problem.hardware, links=links))


def _sets(rng: np.random.Generator, devices: int) -> tuple[tuple[int, ...], ...]:
    """Disjoint sets of two devices and more; some devices are in none."""
    order, size = rng.permutation(devices).tolist(), int(rng.integers(2, max(devices, 3)))
    sets = [tuple(order[i : i + size]) for i in range(0, devices, size)]
    return tuple(some for some in sets if len(some) > 1) or (tuple(order[:2]),)
