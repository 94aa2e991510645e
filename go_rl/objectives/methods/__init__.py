"""Every method that does not learn."""

from go_rl.objectives.host.methods.local_search import LocalSearch
from go_rl.objectives.host.methods.max_load_dp import MaxLoadDP
from go_rl.objectives.makespan.methods.annealing import MakespanAnnealing
from go_rl.objectives.makespan.methods.best_of import DefaultPlacement, GreedyFusion, OneDevice
from go_rl.objectives.makespan.methods.composed import Composed
from go_rl.objectives.makespan.methods.expert import MakespanExpert
from go_rl.objectives.makespan.methods.heft import Heft
from go_rl.objectives.makespan.methods.metis import MakespanMetis
from go_rl.objectives.makespan.methods.random import MakespanRandom
from go_rl.objectives.methods.exhaustive import Exhaustive, is_small
from go_rl.objectives.methods.expert import Expert
from go_rl.objectives.methods.greedy import Greedy
from go_rl.objectives.ring.methods.annealing import Annealing
from go_rl.objectives.ring.methods.exact import Exact
from go_rl.objectives.ring.methods.ideal_search import IdealDP
from go_rl.objectives.ring.methods.linear_dp import LinearDP
from go_rl.objectives.ring.methods.local_search import RingLocalSearch
from go_rl.objectives.ring.methods.metis import Metis
from go_rl.objectives.ring.methods.order_search import OrderSearch
from go_rl.objectives.ring.methods.random_search import RandomSearch
from go_rl.objectives.ring.methods.unit_annealing import UnitAnnealing

__all__ = [
    "Annealing",
    "Composed",
    "DefaultPlacement",
    "Exact",
    "Exhaustive",
    "Expert",
    "Greedy",
    "GreedyFusion",
    "Heft",
    "IdealDP",
    "LinearDP",
    "LocalSearch",
    "MakespanAnnealing",
    "MakespanExpert",
    "MakespanMetis",
    "MakespanRandom",
    "MaxLoadDP",
    "Metis",
    "OneDevice",
    "OrderSearch",
    "RandomSearch",
    "RingLocalSearch",
    "UnitAnnealing",
    "is_small",
]
