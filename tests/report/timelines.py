"""Timelines that the tests of traces and pictures share."""

from functools import cache

import numpy as np

from go_rl.core import Objective, load_hardware
from go_rl.core.decisions import Decisions
from go_rl.costs.models import Analytical, ProblemOptions, make_problem
from go_rl.graphs.cutting.fusion import Fuser
from go_rl.graphs.zoo import zoo_graph
from go_rl.objectives.makespan.simulate.timeline import Timeline, timeline_of


@cache
def zoo_timeline(name: str, hardware: str, fused: bool = True) -> Timeline:
    """A random plan of a graph of the zoo."""
    graph = zoo_graph(name)
    options = ProblemOptions(Objective.MAKESPAN, cost_model=Analytical())  # views take time, too
    problem = make_problem(graph, load_hardware(hardware), options)
    rng = np.random.default_rng(0)
    devices = problem.hardware.num_devices
    device = rng.integers(0, devices, (1, graph.num_nodes)).astype(np.int16)
    ranks = rng.integers(0, 9, (1, graph.num_nodes))
    leader = Fuser(graph).leaders(ranks, device) if fused else None
    return timeline_of(problem, Decisions(device, ranks, leader))
