"""Joint features of network and hardware (Verma et al. 2023, section 3.2 and Table 2).

Network: FLOP of the task, its operator, and its sizes. Hardware: `TRANSFER_FEATURES` of the device,
and the width of the vectors that its code may use. Unknown numbers are NaN.
"""

from __future__ import annotations

from math import log2, nan

import numpy as np
from jaxtyping import Float32

from go_rl.costs.devices.device_features import TRANSFER_FEATURES, device_numbers
from go_rl.costs.programs.learn.examples import ProgramInputs
from go_rl.costs.programs.workloads import TensorTask
from go_rl.costs.programs.workloads.task import SIZES

OPERATORS = tuple(SIZES)
SIZE_NAMES = tuple(sorted({name for names in SIZES.values() for name in names}))
NETWORK_FEATURES = ("flops", *(f"is {op}" for op in OPERATORS), *SIZE_NAMES)
HARDWARE_FEATURES = (*TRANSFER_FEATURES, "code_vector_bytes")
JOINT_FEATURES = (*NETWORK_FEATURES, *HARDWARE_FEATURES)


def joint_features(inputs: ProgramInputs) -> Float32[np.ndarray, "P J"]:
    """Return [P, J] `JOINT_FEATURES`: log2(1 + n) of FLOP and sizes, 0 or 1 for each operator, log2
    of hardware in SI units; NaN where unknown or not a size of the operator.
    """
    network = np.array([_of_task(task) for task in inputs.tasks])
    hardware = np.array(
        [device_numbers(target.device, None, "transfer") for target in inputs.targets]
    )
    code = inputs.devices[:, -1:]
    parts = [network[inputs.task], hardware[inputs.target], code[inputs.target]]
    return np.concatenate(parts, axis=1).astype(np.float32)


def _of_task(task: TensorTask | None) -> list[float]:
    if task is None:
        return [nan] * len(NETWORK_FEATURES)
    sizes = task.named
    return [
        log2(1 + task.flops),
        *(float(task.op == op) for op in OPERATORS),
        *(log2(1 + sizes[name]) if name in sizes else nan for name in SIZE_NAMES),
    ]
