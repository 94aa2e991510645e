"""`HDPConfig`: sizes and learning of HDP. Imports nothing heavy."""

from __future__ import annotations

from dataclasses import dataclass, fields

import numpy as np

from go_rl.core import SearchError


@dataclass(frozen=True)
class HDPConfig:
    """The networks and how they learn.

    Sizes, noise, decays and failures are the paper's or those of the authors' code. What differs is
    what learns better here (``experiments/results/hdp_reproduction.md``): with the published
    settings every placement drawn soon lies on one device.

    - ``learning_rate`` is 0.0003, theirs 0.1, and an update has 16 placements, theirs 4;
      advantages are of one size (``normalise``).
    - The grouper starts from runs of operators (``prior``). Groups that are drawn operator by
      operator from an untrained grouper cut nearly every edge.
    - The grouper reads logarithms of sizes and has an activation, unless ``published``.
    - The baseline starts at the first update's mean reward, theirs at the reward of a failure,
      which praises whatever comes first (``failure_first``).
    - Groupings of one update share their noise; with one grouping that is the same.
    """

    published: bool = False
    """Grouper and features as in the authors' code."""
    groups: int = 256
    """Most groups; a graph with fewer operators has as many groups as operators."""
    groups_per_device: int = 20
    """Groups for each device, at most those."""
    grouper_hidden: int = 64
    """Width of the grouper's hidden layer."""
    adjacency: int = 20
    """Numbers that describe an operator's neighbours, two for each."""
    hidden: int = 512
    """Width of the placer, half of it for each direction of its encoder."""
    temperature: float = 10.0
    """The placer's logits are divided by it."""
    tanh_constant: float = 5.0
    """Largest logit of the placer."""
    groupings: int = 1
    """Groupings drawn for an update."""
    placements: int = 16
    """Placements drawn for each grouping."""
    learning_rate: float = 3e-4
    """Adam's step; 0: nothing is learned, a control."""
    decay: float = 0.95
    """Factor on the learning rate at each decay."""
    decay_updates: int = 50
    """Updates between two decays of the learning rate."""
    decay_start: int = 400
    """Update of the first decay of the learning rate."""
    gradient_norm: float = 1.0
    """Largest norm of a gradient."""
    noise: float = 0.5
    """Standard deviation of the noise on logits, in units of their root mean square."""
    noise_updates: int = 750
    """Updates with noise on the logits."""
    failure_first: bool = False
    """The baseline starts at the reward of a failure; otherwise at the first update's mean."""
    normalise: bool = True
    """Divide advantages by their moving root mean square."""
    prior: float = 10.0
    """The grouper starts from runs of operators in topological order, of equal work: this is added
    to the logit of an operator's run."""
    baseline_decay: float = 0.9
    """Weight of what was known in the moving average of rewards."""
    failing_seconds: float = 100.0
    """Seconds charged for a placement that fails."""
    ignore_failures_from: int = 1000
    """Update from which on placements that fail teach nothing."""

    def __post_init__(self) -> None:
        for item in fields(self):
            value = getattr(self, item.name)
            if item.type == "int":
                least = _LEAST.get(item.name, 1)
                whole = isinstance(value, int) and not isinstance(value, bool)
                if not whole or value < least:
                    raise SearchError(
                        f"hdp: {item.name} must be a whole number >= {least}, not {value!r}"
                    )
            elif item.type == "bool":
                if not isinstance(value, bool):
                    raise SearchError(f"hdp: {item.name} must be true or false, not {value!r}")
            elif not (0 < value < np.inf or (value == 0 and item.name in MAY_BE_ZERO)):
                least = ">= 0" if item.name in MAY_BE_ZERO else "> 0"
                raise SearchError(f"hdp: {item.name} must be finite and {least}, not {value!r}")
        for name in ("hidden", "adjacency"):
            if getattr(self, name) % 2:
                raise SearchError(f"hdp: {name} must be even, not {getattr(self, name)}")
        for name in ("decay", "baseline_decay"):
            if getattr(self, name) > 1:
                raise SearchError(f"hdp: {name} must be at most 1, not {getattr(self, name)}")


_LEAST = {"decay_start": 0, "noise_updates": 0, "ignore_failures_from": 0}
MAY_BE_ZERO = ("noise", "prior", "learning_rate")
