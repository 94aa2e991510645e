"""`Carried`: the best plan of a search, from which a node policy goes on."""

from __future__ import annotations

import numpy as np

from go_rl.policy.agent import Start
from go_rl.policy.nodes.node_decoder import NodeActions
from go_rl.policy.plan_decoder import ProposalArrays, Rollouts


class Carried:
    """Input of the first iteration of the next draw."""

    def __init__(self, seconds: float) -> None:
        """``seconds``: of the plan that draws start from, the reference plan."""
        self.seconds = seconds
        self.start: Start | None = None
        """The choices of the best plan; None: no draw beat the first one."""

    def offer(self, proposals: ProposalArrays, rollouts: Rollouts, count: int) -> None:
        """Take the best of the first ``count`` samples, if it is better; only samples of a node
        policy are looked at."""
        drawn = {name: one for name, one in proposals.items() if isinstance(one, NodeActions)}
        if not drawn or not count:
            return
        row = int(np.argmin(rollouts.priced.seconds[:count]))
        if rollouts.priced.seconds[row] < self.seconds:
            self.seconds = float(rollouts.priced.seconds[row])
            self.start = {name: np.asarray(one.chosen)[row, -1] for name, one in drawn.items()}
