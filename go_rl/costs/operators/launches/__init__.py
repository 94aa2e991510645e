"""A network's graph as the kernels that it launches on a GPU."""

from go_rl.costs.operators.launches.eager import eager_launches
from go_rl.costs.operators.launches.fused import fused_launches
from go_rl.costs.operators.launches.launch import Launch, Launches

__all__ = ["Launch", "Launches", "eager_launches", "fused_launches"]
