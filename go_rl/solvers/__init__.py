"""Static constraints of the ring, and the solver that makes every proposal obey them."""

from go_rl.core import Means
from go_rl.solvers.constraints.constrained_sampling import sample_with_constraints
from go_rl.solvers.constraints.custom_constraint import (
    AtMostPerChip,
    CustomConstraint,
    DifferentChips,
    DomainView,
)
from go_rl.solvers.constraints.domain_store import DomainStore
from go_rl.solvers.ring_instance import RingInstance, ring_instance
from go_rl.solvers.ring_solver import RingSolver
from go_rl.solvers.sample_and_fix import SolverOptions
from go_rl.solvers.samples import Samples

__all__ = [
    "AtMostPerChip",
    "CustomConstraint",
    "DifferentChips",
    "DomainStore",
    "DomainView",
    "Means",
    "RingInstance",
    "RingSolver",
    "Samples",
    "SolverOptions",
    "ring_instance",
    "sample_with_constraints",
]
