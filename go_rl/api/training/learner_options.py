"""`LearnerOptions`: how a policy learns on one graph, for every objective; the flags of
``go-rl finetune``."""

from __future__ import annotations

from dataclasses import dataclass, fields, replace

from go_rl.core import SearchError
from go_rl.policy.learn.config import FINE_TUNING, FineTuneConfig, PPOConfig


@dataclass(frozen=True)
class LearnerOptions:
    """Changes to the configuration that an objective's policies learn with; None: as it is."""

    batch: int | None = None
    """Samples of an update. Default: 20; node policies 32."""
    first: int | None = None
    """Samples of the unchanged policy, its likeliest decision first, before that. Default: 20; node
    policies 1."""
    top: float | None = None
    """Share of a batch that teaches, the best; 1: all, against their mean. Default: ring policies
    all, against a running baseline; others 0.3."""
    remembered: int | None = None
    """Best decisions so far that are learned again with each batch; 0: none. Default: 0."""
    learning_rate: float | None = None
    """Adam's first learning rate. Default: 6e-4 for ring, 3e-3 for makespan."""
    epochs: int | None = None
    """Gradient steps on one batch of samples. Default: 4; node policies 2."""
    clip: float | None = None
    """Probability ratios beyond 1 +- clip earn nothing more. Default: 0.2."""
    entropy: float | None = None
    """Weight of the entropy of the decisions. Default: 1e-3."""
    gradient_norm: float | None = None
    """Largest norm of a gradient. Default: 1."""
    decay_updates: int | None = None
    """Updates over which the learning rate falls to a tenth, along a cosine; 0: it stays.
    Default: 0."""

    def config_for(self, kind: str) -> FineTuneConfig | None:
        """Return the configuration of a policy, by its name, with these changes; None for a
        dispatch policy, which has none.

        Raises:
            SearchError: an option has no meaning for the policy.
            TrainingError: a value is out of range.
        """
        given = {f.name: v for f in fields(self) if (v := getattr(self, f.name)) is not None}
        if kind not in FINE_TUNING:
            if given:
                raise SearchError(
                    f"{next(iter(given))} has no meaning for policy {kind}, which searches from "
                    "its own distribution; leave it out"
                )
            return None
        default = FINE_TUNING[kind]
        own, ppo = ({f.name for f in fields(kind)} for kind in (default, PPOConfig))
        for name in given:
            if name not in own | ppo:
                raise SearchError(f"{name} has no meaning for policy {kind}; leave it out")
        learner = replace(default.ppo, **{n: v for n, v in given.items() if n in ppo})
        return replace(default, ppo=learner, **{n: v for n, v in given.items() if n in own})
