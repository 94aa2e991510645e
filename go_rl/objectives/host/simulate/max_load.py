"""The max-load objective of dnn-partitioning: the largest load over the devices of a pipeline.

CPU load: seconds of its nodes. Accelerator load: seconds of its nodes, plus the transfer of each
distinct external producer that feeds it, once, plus the transfer of each own node with an external
consumer, once. Source: Tarnawski et al., NeurIPS 2020, section 5.
"""

from __future__ import annotations

from typing import no_type_check

import numpy as np
from jaxtyping import Float64, Int8, Int16
from numba import njit

from go_rl.core import Evaluation, Problem
from go_rl.core.evaluation import OK
from go_rl.objectives.host.simulate.device_rules import price_batch, price_plan, static_status


def max_load_batch(
    problem: Problem, devices: Int16[np.ndarray, "B N"]
) -> tuple[Float64[np.ndarray, "B"], Int8[np.ndarray, "B"]]:
    """Price ``B`` plans at once, in seconds an iteration (`price_batch`)."""
    return price_batch(problem, devices, _price)


def evaluate_max_load(problem: Problem, device: Int16[np.ndarray, "N"]) -> Evaluation:
    """Price one plan, with the load of each device."""
    return price_plan(problem, device, _price)


@njit(cache=True, nogil=True)
@no_type_check
def _price(place, device, loads, held):
    """Return ``(largest load, status code)`` of one plan and fill ``loads`` [D]."""
    loads[:] = 0.0
    code = static_status(place, device, held)
    if code != OK:
        return np.inf, code
    nodes = device.shape[0]
    touched = np.zeros(nodes, np.uint64)
    for n in range(nodes):
        touched[n] = np.uint64(1) << np.uint64(device[n])
        loads[device[n]] += place.seconds[place.kind[device[n]], n]
    for e in range(place.senders.shape[0]):
        touched[place.senders[e]] |= np.uint64(1) << np.uint64(device[place.receivers[e]])
    for n in range(nodes):
        if touched[n] & (touched[n] - np.uint64(1)):
            for d in range(loads.shape[0]):
                if not place.is_cpu[d] and (touched[n] >> np.uint64(d)) & np.uint64(1):
                    loads[d] += place.transfer[n]
    return loads.max(), code
