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
from go_rl.objectives.host.simulate.device_rules import (
    check_shape,
    evaluation,
    placement,
    static_status,
)
from go_rl.runtime.threads import on_threads


def max_load_batch(
    problem: Problem, devices: Int16[np.ndarray, "B N"]
) -> tuple[Float64[np.ndarray, "B"], Int8[np.ndarray, "B"]]:
    """Price ``B`` plans at once.

    Returns:
        values [B] in seconds an iteration (inf where the plan is unusable) and indices [B] into
        `go_rl.core.evaluation.STATUS_CODES`.
    """
    check_shape(problem, devices)
    place, device = placement(problem), np.ascontiguousarray(devices)
    values, codes = np.full(len(device), np.inf), np.zeros(len(device), np.int8)

    def share(rows: range) -> None:
        loads, held = np.zeros((2, problem.hardware.num_devices))
        for b in rows:
            codes[b] = _price(place, device[b], loads, held)
            if codes[b] == OK:
                values[b] = loads.max()

    on_threads(share, len(device))
    return values, codes


def evaluate_max_load(problem: Problem, device: Int16[np.ndarray, "N"]) -> Evaluation:
    """Price one plan, with the load of each device."""
    check_shape(problem, device)
    place, num_devices = placement(problem), problem.hardware.num_devices
    loads = np.zeros(num_devices)
    code = _price(place, np.ascontiguousarray(device), loads, np.zeros(num_devices))
    value = float(loads.max()) if code == OK else np.inf
    return evaluation(problem, device, (value, int(code)), loads)


@njit(cache=True, nogil=True)
@no_type_check
def _price(place, device, loads, held):
    """Fill ``loads`` [D] for one plan; returns the status code."""
    loads[:] = 0.0
    code = static_status(place, device, held)
    if code != OK:
        return code
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
    return code
