"""Static constraints of the ring, and the solver that makes every proposal obey them."""

from go_rl.simulate.replication import place_copies, replicas_of, replicated_nodes
from go_rl.solvers.ring_instance import RingInstance, ring_instance
from go_rl.solvers.ring_solver import RingSolver, Samples, SolverOptions

__all__ = [
    "RingInstance",
    "RingSolver",
    "Samples",
    "SolverOptions",
    "place_copies",
    "replicas_of",
    "replicated_nodes",
    "ring_instance",
]
