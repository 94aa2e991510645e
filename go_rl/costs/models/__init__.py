"""Seconds for a kernel on a device, and the priced `Problem` built from them."""

from go_rl.costs.models.analytical import Analytical, Efficiency, shipped_parameters
from go_rl.costs.models.cost_model import CostModel, Kernels
from go_rl.costs.models.make_problem import ProblemOptions, file_hardware, make_problem
from go_rl.costs.models.profiled import Profiled
from go_rl.costs.models.registry import named_cost

__all__ = [
    "Analytical",
    "CostModel",
    "Efficiency",
    "Kernels",
    "ProblemOptions",
    "Profiled",
    "file_hardware",
    "make_problem",
    "named_cost",
    "shipped_parameters",
]
