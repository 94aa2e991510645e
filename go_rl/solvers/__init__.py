"""Static constraints of the ring, and the solver that makes every proposal obey them."""

from go_rl.simulate.replication import place_copies, replicas_of, replicated_nodes
from go_rl.solvers.constrained_sampling import sample_with_constraints
from go_rl.solvers.custom_constraint import (
    AtMostPerChip,
    CustomConstraint,
    DifferentChips,
    DomainView,
)
from go_rl.solvers.domain_store import DomainStore
from go_rl.solvers.ring_instance import RingInstance, ring_instance
from go_rl.solvers.ring_solver import RingSolver, Samples, SolverOptions

__all__ = [
    "AtMostPerChip",
    "CustomConstraint",
    "DifferentChips",
    "DomainStore",
    "DomainView",
    "RingInstance",
    "RingSolver",
    "Samples",
    "SolverOptions",
    "place_copies",
    "replicas_of",
    "replicated_nodes",
    "ring_instance",
    "sample_with_constraints",
]
