"""Every method that does not learn."""

from go_rl.search.exhaustive import Exhaustive, is_small
from go_rl.search.expert import Expert, read_split
from go_rl.search.greedy import Greedy
from go_rl.search.host.local_search import LocalSearch
from go_rl.search.host.max_load_dp import MaxLoadDP
from go_rl.search.makespan.annealing import StepAnnealing
from go_rl.search.makespan.composed import StepComposed
from go_rl.search.makespan.default import StepDefault
from go_rl.search.makespan.expert import StepExpert
from go_rl.search.makespan.fusion import StepGreedyFusion
from go_rl.search.makespan.heft import StepHeft
from go_rl.search.makespan.metis import StepMetis
from go_rl.search.makespan.random import StepRandom
from go_rl.search.ring.annealing import Annealing
from go_rl.search.ring.exact import Exact
from go_rl.search.ring.ideal_search import IdealDP
from go_rl.search.ring.linear_dp import LinearDP
from go_rl.search.ring.metis import Metis
from go_rl.search.ring.random_search import RandomSearch

__all__ = [
    "Annealing",
    "Exact",
    "Exhaustive",
    "Expert",
    "Greedy",
    "IdealDP",
    "LinearDP",
    "LocalSearch",
    "MaxLoadDP",
    "Metis",
    "RandomSearch",
    "StepAnnealing",
    "StepComposed",
    "StepDefault",
    "StepExpert",
    "StepGreedyFusion",
    "StepHeft",
    "StepMetis",
    "StepRandom",
    "is_small",
    "read_split",
]
