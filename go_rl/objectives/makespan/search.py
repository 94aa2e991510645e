"""`MAKESPAN_SEARCH`: methods of fully connected devices."""

from __future__ import annotations

from go_rl.objectives.common.kit import SearchKit, Turn
from go_rl.objectives.makespan.exhaustive import exhaust_makespan, is_small_makespan
from go_rl.objectives.makespan.methods.annealing import MakespanAnnealing
from go_rl.objectives.makespan.methods.best_of import DefaultPlacement, GreedyFusion, OneDevice
from go_rl.objectives.makespan.methods.composed import Composed
from go_rl.objectives.makespan.methods.expert import MakespanExpert
from go_rl.objectives.makespan.methods.hdp.hdp import HDP
from go_rl.objectives.makespan.methods.heft import Heft
from go_rl.objectives.makespan.methods.layer_splits import EqualLayers, FillInOrder, LayersBySpeed
from go_rl.objectives.makespan.methods.metis import MakespanMetis
from go_rl.objectives.makespan.methods.random import MakespanRandom

MAKESPAN_SEARCH = SearchKit(
    methods={
        "default": DefaultPlacement,
        "one-device": OneDevice,
        "composed": Composed,
        "expert": MakespanExpert,
        "fusion-greedy": GreedyFusion,
        "hdp": HDP,
        "heft": Heft,
        "random": MakespanRandom,
        "annealing": MakespanAnnealing,
        "metis": MakespanMetis,
        "layers-equal": EqualLayers,
        "layers-by-speed": LayersBySpeed,
        "fill-in-order": FillInOrder,
    },
    references=("default", "one-device"),
    turns=(
        Turn("composed", 0.1),
        # Its search goes on from turn to turn: what it finds late, annealing cannot reach.
        Turn("dispatch-search", 0.65, pace=4e5, lightest=1.0),
        Turn("annealing", 0.25, pace=8e5),
    ),
    exhaust=exhaust_makespan,
    is_small=is_small_makespan,
)
"""Search for the shortest iteration."""
