"""Plans with nodes on given devices, and stages run in this process, one after the other: a process
for each takes a second to start."""

from pathlib import Path
from typing import Any

import go_rl
from go_rl.core import Plan
from go_rl.plans.pipeline.model_inputs import model_inputs
from go_rl.plans.pipeline.output_errors import OutputError
from go_rl.plans.pipeline.sessions import open_session
from go_rl.plans.pipeline.whole_model import WholeModel
from go_rl.plans.stages.manifest import Manifest


def output_errors(
    folder: Path, manifest: Manifest, inputs: Path | None = None
) -> list[OutputError]:
    """Differences of the outputs of an exported folder from the whole model's."""
    arrays = model_inputs(manifest, folder, inputs, {}, seed=0)
    made = dict(arrays)
    for stage in manifest.stages:
        names = [tensor.name for tensor in stage.outputs]
        session = open_session(manifest.runtime, folder / stage.file, names, 1, as_written=False)
        assert set(session.inputs) == {tensor.name for tensor in stage.inputs}
        made |= session.run(made)
    whole = WholeModel(folder / manifest.model, manifest, arrays, 1, as_written=False)
    return list(whole.compare(made))


def plan_of(model: Any, fixed: dict, objective: str = "makespan", hardware: str = "p100x2",
            **options: Any) -> Plan:  # fmt: skip
    """A plan with nodes on devices of their own."""
    if objective == "makespan":
        options |= {"decide": "placement", "method": "default"}
    return go_rl.optimize(
        model, hardware=hardware, objective=objective, samples=2, fixed=fixed,
        **{"method": "greedy", **options},
    ).best  # fmt: skip
