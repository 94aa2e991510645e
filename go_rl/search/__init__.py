"""Every optimizer that does not learn, and the proven bounds."""

from go_rl.search.annealing import Annealing
from go_rl.search.exact import Exact
from go_rl.search.exhaustive import Exhaustive, is_small
from go_rl.search.expert import Expert, read_split
from go_rl.search.greedy import Greedy
from go_rl.search.ideal_search import IdealDP
from go_rl.search.latency_bounds import latency_bound
from go_rl.search.linear_dp import LinearDP
from go_rl.search.local_search import LocalSearch
from go_rl.search.max_load_bounds import max_load_bound
from go_rl.search.max_load_dp import MaxLoadDP
from go_rl.search.metis import Metis
from go_rl.search.random_search import RandomSearch
from go_rl.search.ring_bounds import improve_bound, ring_bound
from go_rl.search.ring_greedy import greedy_partition
from go_rl.search.step_annealing import StepAnnealing
from go_rl.search.step_composed import StepComposed
from go_rl.search.step_default import StepDefault
from go_rl.search.step_expert import StepExpert
from go_rl.search.step_fusion import StepGreedyFusion
from go_rl.search.step_heft import StepHeft
from go_rl.search.step_metis import StepMetis
from go_rl.search.step_random import StepRandom

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
    "greedy_partition",
    "improve_bound",
    "is_small",
    "latency_bound",
    "max_load_bound",
    "read_split",
    "ring_bound",
]
