"""Where samples are solved and priced: this process, or Ray workers (an optional extra).

The network runs here either way; a worker gets proposals and a seed, and answers with plans and
prices. The same seeds give the same answers wherever they are computed.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from go_rl.core import TrainingError
from go_rl.core.errors import nearest
from go_rl.policy.agent import Agent
from go_rl.train.collect import Collected, Credit, TrainingCase, collect
from go_rl.train.config import WORKERS

Collector = Callable[
    [Agent, Sequence[TrainingCase], Mapping[str, int], Credit, Sequence[int]], list[Collected]
]
"""Collects one batch for each problem, each from its own seed."""


def local_collector(
    agent: Agent,
    cases: Sequence[TrainingCase],
    sizes: Mapping[str, int],
    credit: Credit,
    seeds: Sequence[int],
) -> list[Collected]:
    """Collect in this process, one problem after the other; a `Collector`."""
    pairs = zip(cases, seeds, strict=True)
    return [collect(agent, case, sizes, credit, seed) for case, seed in pairs]


def collector(workers: str) -> Collector:
    """Return the collector of a name in `WORKERS`.

    Raises:
        TrainingError: unknown name.
        MissingDependencyError: Ray is not installed.
    """
    if workers == "local":
        return local_collector
    if workers == "ray":
        from go_rl.train.ray_workers import ray_collector

        return ray_collector()
    raise TrainingError(
        f"workers must be one of {', '.join(WORKERS)}, not {workers!r}{nearest(workers, WORKERS)}"
    )
