"""What cannot travel to the worker is named, and no worker is started for it."""

import jax
import jax.numpy as jnp
import numpy as np

from go_rl.costs.timing.config import CollectConfig
from go_rl.costs.timing.core_speed import FolderPace, pace_path, write_pace
from go_rl.graphs.readers.jax.stages import jax_program
from go_rl.tuning.xla.kernel_timer import WorkerSource


def test_an_operand_that_does_not_travel_is_named(tmp_path):
    def noise(key, x):
        return x + jax.random.normal(key, x.shape)

    key = jax.eval_shape(lambda: jax.random.key(0))
    program = jax_program(noise, (key, jax.ShapeDtypeStruct((4,), jnp.float32)))
    write_pace(pace_path(tmp_path, "cpu-1"), FolderPace(1e-5))
    with WorkerSource(program, CollectConfig(target="cpu-1"), tmp_path) as source:
        first = int(np.flatnonzero(~program.graph.is_fed)[0])
        said = source.together([((first,), "")])
    assert len(said) == 1
    assert "cannot be exported" in str(said[0])
    assert "an operand is of type key<" in str(said[0])
