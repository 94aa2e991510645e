"""The whole model beside its stages: another model is one sentence, half precision passes."""

from pathlib import Path

import numpy as np
import onnx
import pytest
from graphs.readers.onnx_models import array, parsed
from onnx.numpy_helper import from_array
from plans.stages_here import output_errors, plan_of

import go_rl
from go_rl.core import ExecutionError
from go_rl.plans.pipeline.config import PipelineConfig
from go_rl.plans.pipeline.whole_model import WholeModel
from go_rl.plans.stages.manifest import Manifest

pytest.importorskip("onnxruntime", reason="stages are run by onnxruntime")


@pytest.fixture(scope="module")
def manifest(tmp_path_factory: pytest.TempPathFactory) -> Manifest:
    """Two stages of a network with the results ``h`` and ``y``."""
    path = tmp_path_factory.mktemp("whole")
    text = "(float[batch,8] x) => (float[batch,8] h, float[batch,8] y) { [a] h = MatMul(x, w) "
    onnx.save(parsed(text + "[b] y = MatMul(h, w) }", array("w", np.eye(8))), path / "m.onnx")
    plan = plan_of(path / "m.onnx", {"a": 0, "b": 1}, dims={"batch": 4})
    return go_rl.export_stages(plan, path / "m.onnx", path / "s")


ARRAYS = {"x": np.ones((4, 8), np.float32)}


def _whole(path: Path, manifest: Manifest, text: str) -> WholeModel:
    onnx.save(parsed(text), path / "other.onnx")
    return WholeModel(path / "other.onnx", manifest, ARRAYS, 1, as_written=False)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("(float[batch,8] x) => (float[batch,8] h) { h = Relu(x) }",
         "has no output 'y', which the stages make"),
        ("(float[batch,8] z) => (float[batch,8] h, float[batch,8] y) { h = Relu(z) y = Relu(z) }",
         "has no input 'x', which the stages read"),
        ("(float[batch,5] x) => (float[batch,5] h, float[batch,5] y) { h = Relu(x) y = Relu(x) }",
         r"input 'x' is float32 \[any, 5\]; the stages read float32 \[4, 8\]"),
        ("(double[batch,8] x) => (double[batch,8] h, double[batch,8] y) "
         "{ h = Relu(x) y = Relu(x) }",
         r"input 'x' is float64 \[any, 8\]; the stages read float32 \[4, 8\]"),
    ],
)  # fmt: skip
def test_another_model_is_named_with_its_first_difference(tmp_path, manifest, text, said):
    with pytest.raises(ExecutionError, match=rf"other\.onnx: {said}"):
        list(_whole(tmp_path, manifest, text).compare({}))


def test_a_model_that_fails_or_makes_other_outputs_is_named(tmp_path, manifest):
    fails = """(float[batch,8] x) => (float[a,b] h, float[c,d] y)
        { s = Constant<value_ints=[5, 5]>() h = Reshape(x, s) y = Relu(h) }"""
    whole = _whole(tmp_path, manifest, fails)
    for run in (lambda: list(whole.compare({})),
                lambda: whole.throughput(PipelineConfig(samples=2))):  # fmt: skip
        with pytest.raises(ExecutionError, match=r"other\.onnx: onnxruntime cannot run the model"):
            run()
    whole = _whole(tmp_path, manifest, fails.replace("5, 5", "8, 4"))
    made = {"h": ARRAYS["x"], "y": ARRAYS["x"]}
    with pytest.raises(ExecutionError, match=r"output 'h' is float32 \[4, 8\]; the whole .*\[8, 4"):
        list(whole.compare(made))


@pytest.mark.parametrize("last", ["y = MatMul(c, wy)", "d = MatMul(c, wy) y = Cast<to=1>(d)"])
def test_half_precision_passes_and_a_wrong_weight_does_not(tmp_path, last):
    rng = np.random.default_rng(0)
    drawn = [(rng.standard_normal((64, 64)) / 8).astype(np.float16) for _ in range(4)]
    weights = [from_array(each, f"w{v}") for each, v in zip(drawn, "abcy", strict=True)]
    kind = "float" if "Cast" in last else "float16"
    text = f"""(float16[16,64] x) => ({kind}[16,64] y) {{ [a] a = MatMul(x, wa)
        [b] b = MatMul(a, wb) [c] c = MatMul(b, wc) {last} }}"""
    model = tmp_path / "m.onnx"
    onnx.save(parsed(text, *weights), model)
    plan = plan_of(model, {"a": 0, "b": 1, "c": 0})
    manifest = go_rl.export_stages(plan, model, tmp_path / "s")
    (found,) = output_errors(tmp_path / "s", manifest)
    assert found.max_relative <= found.tolerance == 0.02
    weights[1] = from_array(drawn[1] * np.float16(1.05), "wb")
    onnx.save(parsed(text, *weights), model)
    (found,) = output_errors(tmp_path / "s", manifest)
    assert not found.accepted()
