"""Every method that does not learn."""

from go_rl.search.exhaustive import Exhaustive, is_small
from go_rl.search.expert import Expert, read_split
from go_rl.search.greedy import Greedy
from go_rl.search.host.local_search import LocalSearch
from go_rl.search.host.max_load_dp import MaxLoadDP
from go_rl.search.makespan.annealing import MakespanAnnealing
from go_rl.search.makespan.best_of import DefaultPlacement, GreedyFusion, OneDevice
from go_rl.search.makespan.composed import Composed
from go_rl.search.makespan.expert import MakespanExpert
from go_rl.search.makespan.heft import Heft
from go_rl.search.makespan.metis import MakespanMetis
from go_rl.search.makespan.random import MakespanRandom
from go_rl.search.ring.annealing import Annealing
from go_rl.search.ring.exact import Exact
from go_rl.search.ring.ideal_search import IdealDP
from go_rl.search.ring.linear_dp import LinearDP
from go_rl.search.ring.local_search import RingLocalSearch
from go_rl.search.ring.metis import Metis
from go_rl.search.ring.order_annealing import OrderAnnealing
from go_rl.search.ring.random_search import RandomSearch
from go_rl.search.ring.unit_annealing import UnitAnnealing

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
    "OrderAnnealing",
    "RandomSearch",
    "RingLocalSearch",
    "UnitAnnealing",
    "is_small",
    "read_split",
]
