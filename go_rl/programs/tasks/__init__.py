"""Tasks of tensor programs: the distinct operators of networks, with their sizes."""

from go_rl.programs.tasks.network_tasks import network_tasks, task_uses
from go_rl.programs.tasks.task import TaskError, TensorTask
from go_rl.programs.tasks.te_workloads import task_module

__all__ = ["TaskError", "TensorTask", "network_tasks", "task_module", "task_uses"]
