"""The learned cost model behind `CostModel`."""

from dataclasses import replace

import numpy as np
import pytest
from costs.kernels.kernels import few_kernels, weights

from go_rl.core import Device, HardwareError
from go_rl.costs.models.cost_model import Kernels
from go_rl.costs.models.learned import Learned

CPU = Device("cpu-1", 1e11, 1e12, 2e10, is_cpu=True)


def test_it_prices_fused_kernels_on_its_own_target_only():
    graph = few_kernels().graph
    nothing = np.zeros(graph.num_nodes)
    asked = Kernels(graph, graph.kind, nothing, nothing, nothing)
    model = Learned(weights())
    seconds = model.seconds(asked, CPU)
    assert seconds.shape == (graph.num_nodes,)
    assert (seconds[graph.is_fed] == 0).all()
    assert (seconds[~graph.is_fed] > 0).all()
    with pytest.raises(HardwareError, match="the learned cost model knows devices of kind 'cpu-1'"):
        model.seconds(asked, replace(CPU, kind="p100"))
