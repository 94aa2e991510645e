"""Ray workers: each solves and prices batches of samples; the network stays in this process.

An optional extra: ``pip install 'go_rl[ray]'``. A worker keeps the solvers of the problems that it
has met. Batches come back in the order in which they were asked for, so that the baseline learns
from them in that order, and results equal those of one process.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any

from go_rl.core import Problem, TrainingError
from go_rl.core.installed import optional_library
from go_rl.policy.kinds import plan_decoder
from go_rl.policy.learn.collect import Asked, Pricer, TrainingCase, price
from go_rl.policy.plan_decoder import PlanDecoder, ProposalArrays, Rollouts


class RolloutWorker:
    """Rollout worker: the actor that runs in a Ray worker."""

    def __init__(self) -> None:
        self._decoders: dict[str, PlanDecoder] = {}

    def learn(self, name: str, problem: Problem, kind: str, solver: str) -> None:
        """Keep a problem, the policy, and how its placements go through the solver."""
        self._decoders[name] = plan_decoder(problem, kind, solver=solver)

    def price(
        self, name: str, proposals: dict[str, ProposalArrays], seed: int
    ) -> dict[str, Rollouts]:
        """Solve and price one batch of a known problem."""
        return price(self._decoders[name], proposals, seed)


def ray_pricer(workers: int | None = None) -> Pricer:
    """Return a pricer that shares batches out over Ray workers; None: one for each core.

    Raises:
        MissingDependencyError: Ray is not installed.
        TrainingError: a worker died; start the run again to resume from its last checkpoint.
    """
    ray = optional_library(
        "ray", "--workers ray needs Ray; install it with: pip install 'go_rl[ray]'"
    )
    if not ray.is_initialized():
        ray.init(include_dashboard=False, log_to_driver=False, configure_logging=False)
    actor: Any = ray.remote(RolloutWorker)
    pool = [actor.options(num_cpus=1).remote() for _ in range(workers or os.cpu_count() or 1)]
    known: set[tuple[int, str]] = set()

    def ask(case: TrainingCase, proposals: dict[str, ProposalArrays], seed: int) -> Any:
        """Send a batch to the worker that has the problem's solver."""
        number, decoder = sum(case.name.encode()) % len(pool), case.decoder
        if (number, case.name) not in known:
            pool[number].learn.remote(
                case.name, decoder.workspace.problem, decoder.kind, decoder.solver
            )
            known.add((number, case.name))
        return pool[number].price.remote(case.name, proposals, seed)

    def run(asked: Sequence[Asked]) -> list[dict[str, Rollouts]]:
        return _gather(ray, [ask(*one) for one in asked], [case for case, _, _ in asked])

    return run


def _gather(
    ray: Any, pending: list[Any], cases: Sequence[TrainingCase]
) -> list[dict[str, Rollouts]]:
    found: list[dict[str, Rollouts]] = []
    for case, reference in zip(cases, pending, strict=True):
        try:
            found.append(ray.get(reference))
        except ray.exceptions.RayActorError as error:
            raise TrainingError(
                f"a Ray worker died while it worked on {case.name!r}; start the run again to "
                "resume from its last checkpoint, with fewer workers if memory ran out"
            ) from error
        except ray.exceptions.RayTaskError as error:
            raise TrainingError(f"a Ray worker failed on {case.name!r}: {error.cause}") from error
    return found
