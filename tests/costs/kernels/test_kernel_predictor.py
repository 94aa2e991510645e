"""The learned cost model: what an ensemble predicts, what it flags, and its files."""

from dataclasses import replace

import numpy as np
import pytest
from costs.kernels.kernels import few_features, few_kernels, weights

from go_rl.core import CheckpointError
from go_rl.costs.kernels.predictor import KernelPredictor, predict_kernels


def test_an_ensemble_says_the_mean_and_adds_its_disagreement_to_its_doubt():
    found = predict_kernels(weights(), few_kernels())
    one, two = (network.predict(few_features()) for network in weights().networks)
    np.testing.assert_allclose(np.log(found.seconds), (one[:, 0] + two[:, 0]) / 2)
    doubt = (np.exp(2 * np.minimum(one[:, 1], 2)) + np.exp(2 * np.minimum(two[:, 1], 2))) / 2
    apart = ((one[:, 0] - two[:, 0]) / 2) ** 2
    np.testing.assert_allclose(found.deviation, np.sqrt(doubt + apart), rtol=1e-5)


def test_an_opcode_never_seen_is_named_and_its_kernels_are_flagged():
    kernels = few_kernels()
    strange = replace(kernels, graph=replace(
        kernels.graph, op_type=tuple("fft" if t == "exp" else t for t in kernels.graph.op_type)
    ))  # fmt: skip
    found = predict_kernels(weights(), strange)
    assert found.unseen == ("fft",)
    with_it = {int(kernels.kernel[i]) for i, t in enumerate(kernels.graph.op_type) if t == "exp"}
    assert set(np.flatnonzero(found.unfamiliar).tolist()) == with_it


def test_other_files_are_refused(tmp_path, monkeypatch):
    with pytest.raises(CheckpointError, match="no kernel cost weights 'kernels-9'"):
        KernelPredictor.load("kernels-9")
    (tmp_path / "bad.npz").write_bytes(b"nothing")
    with pytest.raises(CheckpointError, match="cannot be read as weights"):
        KernelPredictor.load(tmp_path / "bad.npz")
    path = tmp_path / "w.npz"
    weights().save(path)
    monkeypatch.setattr("go_rl.costs.kernels.predictor.KERNEL_FEATURES", ("one",))
    with pytest.raises(CheckpointError, match="its features is "):
        KernelPredictor.load(path)
