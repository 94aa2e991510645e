"""The best plan so far, finished plans, and what the checker says of them."""

import numpy as np
from reference.step_problems import step_problem

from go_rl.core import Budget, OpKind, Progress, Status
from go_rl.objectives.common.incumbent import Incumbent, finish_plan
from go_rl.objectives.makespan.workspace import MakespanWorkspace
from go_rl.verify.check_plan import check_plan


def test_an_incumbent_counts_every_plan_and_keeps_the_best():
    problem = step_problem([1.0, 1.0, 5.0], [(1, 2, 1.0)], 2, decisions=("placement", "schedule"))
    workspace, progress = MakespanWorkspace(problem), Progress(Budget(samples=9))
    incumbent = Incumbent(workspace, progress)
    assert incumbent.seconds == np.inf
    assert incumbent.evaluation.status is Status.GAVE_UP
    device = np.array([[0, 0, 1]] * 3)
    priority = np.array([[0, 0, 0], [0, 1, 0], [1, 0, 0]])
    priced = workspace.evaluate(workspace.decisions(device, priority))
    assert priced.seconds.tolist() == [8.0, 7.0, 8.0]
    incumbent.offer_scored(priced)
    assert (incumbent.seconds, progress.samples) == (7.0, 3)
    assert [(p.samples, p.seconds) for p in progress.curve] == [(1, 8.0), (2, 7.0)]
    incumbent.offer_scored(priced, range(2))
    assert progress.samples == 5
    plan = finish_plan(workspace, incumbent, "by-hand", 3, progress, bound=6.5)
    assert (plan.optimizer, plan.seed, plan.samples) == ("by-hand", 3, 5)
    assert plan.device.tolist() == [0, 0, 1]
    assert plan.priority is not None
    assert plan.priority.tolist() == [0, 1, 0]
    assert (plan.value, plan.bound, plan.optimal) == (7.0, 6.5, False)
    assert finish_plan(workspace, incumbent, "by-hand", 3, progress, bound=9.0).optimal


# the pricer calls a constant free on a device that cannot run it; the checker's rule
# `supported` refuses the plan. Profiles do have such nodes (dnn-partitioning: supportedOnFpga).
def test_pricer_and_checker_agree_on_inputs_that_a_device_cannot_run():
    kinds = [OpKind.CONSTANT, OpKind.ELEMENTWISE, OpKind.ELEMENTWISE]
    seconds = [[np.inf, 3.0, 1.0], [0.0, 4.0, 1.0]]
    problem = step_problem(seconds, [(0, 1, 1.0), (1, 2, 1.0)], 2, kinds=kinds)
    workspace, progress = MakespanWorkspace(problem), Progress(Budget(samples=1))
    incumbent = Incumbent(workspace, progress)
    incumbent.offer_scored(workspace.evaluate(workspace.decisions(np.array([[0, 0, 1]]))))
    plan = finish_plan(workspace, incumbent, "by-hand", 0, progress)
    assert check_plan(plan, problem).status is plan.evaluation.status
