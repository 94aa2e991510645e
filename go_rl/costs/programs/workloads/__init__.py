"""Tasks of tensor programs: the distinct operators of networks, with their sizes."""

from go_rl.costs.programs.workloads.network_tasks import network_tasks, task_uses
from go_rl.costs.programs.workloads.task import TaskError, TensorTask
from go_rl.costs.programs.workloads.te_workloads import task_module

__all__ = ["TaskError", "TensorTask", "network_tasks", "task_module", "task_uses"]
