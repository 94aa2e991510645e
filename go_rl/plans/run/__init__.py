"""Execution of a plan: the user's JAX function on the devices that the plan names, timed."""

from go_rl.plans.run.devices import Chosen, choose_devices
from go_rl.plans.run.execute import Executed, execute, place_function
from go_rl.plans.run.placed_program import PlacedProgram
from go_rl.plans.run.segments import Segments, cut_segments

__all__ = [
    "Chosen",
    "Executed",
    "PlacedProgram",
    "Segments",
    "choose_devices",
    "cut_segments",
    "execute",
    "place_function",
]
