"""Workers that solve and price samples: this process, or Ray workers (an optional extra).

The network runs here either way; a worker gets proposals and a seed, and answers with plans and
prices.
"""

from __future__ import annotations

from go_rl.core import TrainingError
from go_rl.core.errors import nearest
from go_rl.policy.learn.collect import Pricer, price_here
from go_rl.policy.learn.config import WORKERS


def pricer(workers: str) -> Pricer:
    """Return what prices samples, by a name in `WORKERS`.

    Raises:
        TrainingError: unknown name.
        MissingDependencyError: Ray is not installed.
    """
    if workers == "local":
        return price_here
    if workers == "ray":
        from go_rl.policy.learn.ray_workers import ray_pricer

        return ray_pricer()
    raise TrainingError(
        f"workers must be one of {', '.join(WORKERS)}, not {workers!r}{nearest(workers, WORKERS)}"
    )
