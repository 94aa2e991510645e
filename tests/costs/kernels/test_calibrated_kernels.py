"""Kernel costs corrected by what was measured on this machine."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from go_rl.api.this_device import CalibrateConfig, calibrate, predict_this, this_weights
from go_rl.core import CheckpointError, ProblemError, TrainingError
from go_rl.core.files.run_lock import RunLockError, locked
from go_rl.core.hardware.processor import processor_name
from go_rl.costs.kernels.calibrated import CalibratedKernels, MeasuredKernels
from go_rl.costs.kernels.predictor import KernelPredictor, latest_weights
from go_rl.costs.operators.tables import OperatorError
from go_rl.graphs.cutting.compiled import compiled_network
from go_rl.graphs.readers.jax.reader import trace_jax
from go_rl.graphs.zoo.index import zoo_graph
from go_rl.tuning.config import TuneConfig, TuningError
from go_rl.tuning.xla.guides import guide_of

NETWORK = "bert-tiny"


@pytest.fixture(scope="module")
def graph():
    return zoo_graph(NETWORK)


@pytest.fixture(scope="module")
def kernels(graph):
    return compiled_network(graph).kernels


@pytest.fixture(scope="module")
def calibrated(kernels) -> CalibratedKernels:
    """A machine on which every kernel takes twice as long as predicted."""
    seconds = 2 * KernelPredictor.load(latest_weights("cpu-1")).predict(kernels)
    return CalibratedKernels.fit(MeasuredKernels(kernels, seconds, processor_name()))


@pytest.mark.slow
def test_a_constant_factor_is_found(kernels, calibrated):
    expected = 2 * KernelPredictor.load(latest_weights("cpu-1")).predict(kernels)
    assert calibrated.predict(kernels) == pytest.approx(expected, rel=1e-3)
    assert calibrated.error < 0.1
    found = calibrated.interval(kernels)
    assert (found.low <= found.seconds).all()
    assert (found.seconds <= found.high).all()


def test_file_round_trip(tmp_path, kernels, calibrated):
    calibrated.save(tmp_path / "this.npz")
    again = CalibratedKernels.load(tmp_path / "this.npz")
    assert again.predict(kernels) == pytest.approx(calibrated.predict(kernels))


@pytest.mark.slow
def test_a_network_is_the_sum_of_its_kernels(tmp_path, graph, calibrated):
    calibrated.save(tmp_path / "this.npz")
    found = predict_this(graph, tmp_path / "this.npz")
    network = compiled_network(graph)
    again = 0.0 if network.again is None else calibrated.predict(network.again).sum()
    expected = calibrated.predict(network.kernels).sum() + again
    assert found.latency_ms == pytest.approx(1e3 * expected)
    assert any(each.what.startswith("dot_general + add") for each in found.operators)
    assert found.low_ms is not None
    assert found.low_ms <= found.latency_ms * (1 + 1e-9)
    busy = {str(graph.names[node]) for node in np.flatnonzero(~graph.is_fed).tolist()}
    assert busy <= {name for each in found.operators for name in each.nodes}
    assert len(network.nodes) < len(busy)
    alone = predict_this(graph, tmp_path / "this.npz", fusion="none")
    assert len(alone.operators) > len(found.operators)


def test_another_processor_is_refused(tmp_path, graph, kernels, calibrated):
    other = CalibratedKernels.fit(
        MeasuredKernels(
            kernels, np.exp(calibrated.examples.residual), "GenuineIntel family 99 model 1"
        )
    )
    other.save(tmp_path / "this.npz")
    with pytest.raises(TrainingError, match="calibrated to a processor GenuineIntel family 99"):
        predict_this(graph, tmp_path / "this.npz")
    with pytest.raises(TuningError, match="calibrated to a processor GenuineIntel family 99"):
        guide_of(TuneConfig(cost=f"learned:{tmp_path / 'this.npz'}"))


def test_bad_input(tmp_path, monkeypatch, graph, kernels, calibrated):
    with pytest.raises(TrainingError, match="run go-rl calibrate --device this"):
        predict_this(graph, tmp_path / "none.npz")
    (tmp_path / "bad.npz").write_bytes(b"bad")
    with pytest.raises(CheckpointError):
        predict_this(graph, tmp_path / "bad.npz")
    calibrated.save(tmp_path / "this.npz")
    with pytest.raises(ProblemError, match="a table of operators is of GPUs"):
        predict_this("table.csv", tmp_path / "this.npz")
    half = jax.ShapeDtypeStruct((8, 8), jnp.float16)
    with pytest.raises(OperatorError, match="only float32 was measured"):
        predict_this(trace_jax(lambda x: x @ x, half), tmp_path / "this.npz")
    few = kernels.take(np.arange(3))
    with pytest.raises(TrainingError, match="3 kernels have a time, and 8 are needed"):
        CalibratedKernels.fit(MeasuredKernels(few, np.ones(3), "cpu"))
    with pytest.raises(TrainingError, match="7 kernels are too few; 8 or more are needed"):
        calibrate(tmp_path / "new.npz", CalibrateConfig(kernels=7))
    with pytest.raises(TrainingError, match=r"the name of .*new must end in \.npz"):
        calibrate(tmp_path / "new")
    new = tmp_path / "new.npz"
    with locked(new, file=True), pytest.raises(RunLockError, match=r"new\.npz"):
        calibrate(new)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert this_weights().parent == tmp_path / "go_rl"
