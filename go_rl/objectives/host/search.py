"""`MAX_LOAD_SEARCH` and `LATENCY_SEARCH`: methods of both objectives of host memory."""

from __future__ import annotations

from go_rl.objectives.common.kit import SearchKit, Turn
from go_rl.objectives.host.exhaustive import exhaust_host, is_small_host
from go_rl.objectives.host.methods.local_search import LocalSearch
from go_rl.objectives.host.methods.max_load_dp import MaxLoadDP

MAX_LOAD_SEARCH = SearchKit(
    methods={"dp": MaxLoadDP, "local-search": LocalSearch},
    references=("greedy",),
    turns=(Turn("dp", 0.3), Turn("local-search", 0.7)),
    exhaust=exhaust_host,
    is_small=is_small_host,
    in_one_round=True,
)
"""Search for the smallest load."""
LATENCY_SEARCH = SearchKit(
    methods={"local-search": LocalSearch},
    references=("greedy",),
    turns=(Turn("local-search", 1.0),),
    exhaust=exhaust_host,
    is_small=is_small_host,
    in_one_round=True,
)
"""Search for the shortest sample."""
