"""`auto_cost`: the cost model of a problem whose user names none, ``--cost auto``."""

from __future__ import annotations

from typing import NamedTuple

from go_rl.core import Hardware, OpGraph, ProblemError
from go_rl.costs.models.analytical import Analytical
from go_rl.costs.models.cost_model import CostModel
from go_rl.costs.models.gpus.gpu_sheets import has_learned_gpus, why_unlearned
from go_rl.costs.models.kernel_cache import check_shapes
from go_rl.costs.models.profiled import Profiled
from go_rl.costs.models.registry import learned_gpus


class AutoCost(NamedTuple):
    """A cost model that was chosen."""

    model: CostModel
    notes: tuple[str, ...] = ()
    """Sentences about the choice, where the user may have expected another one."""


def auto_cost(graph: OpGraph, hardware: Hardware) -> AutoCost:
    """Return the cost model that knows most of a graph on hardware.

    ``profiled`` for a graph that brings seconds and no FLOP; ``learned:gpus`` where all devices are
    GPUs of the table of devices; ``analytical`` on all others, and where the operators have no
    shapes, from which ``learned:gpus`` predicts.
    """
    if graph.seconds and not graph.has_flops:
        return AutoCost(Profiled())
    if not has_learned_gpus(hardware):
        said = why_unlearned(hardware)
        return AutoCost(Analytical(), (said,) if said else ())
    model = learned_gpus()
    try:
        check_shapes(model.name, graph)
    except ProblemError:
        said = f"Operator times are analytical: {model.name} needs the shapes of operators."
        return AutoCost(Analytical(), (said,))
    return AutoCost(model)
