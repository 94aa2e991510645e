"""StableHLO with transfers between devices, for IREE."""

from go_rl.plans.sinks.iree.jax_function import placed_module
from go_rl.plans.sinks.iree.render import render_iree

__all__ = ["placed_module", "render_iree"]
