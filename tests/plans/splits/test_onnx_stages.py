"""Stages in ONNX files, and what onnx's own checker lets pass."""

import re

import onnx
import pytest
from layered_graphs import devices_of, onnx_file, split_of

from go_rl.core import ReadError, SplitError


def annotated(folder, stages, configuration="pipe", devices=4, declared="pipe"):
    """A copy of the model in which operator i is in stage ``stages[i]``."""
    model = onnx.load(onnx_file(folder, name="source.onnx"))
    model.ir_version = 11
    model.configuration.append(onnx.DeviceConfigurationProto(name=declared, num_devices=devices))
    for number, stage in stages.items():
        for each in stage if isinstance(stage, tuple) else (stage,):
            model.graph.node[number].device_configurations.append(
                onnx.NodeDeviceConfigurationProto(
                    configuration_id=configuration, pipeline_stage=each
                )
            )
    onnx.checker.check_model(model)
    path = folder / "staged.onnx"
    onnx.save(model, path)
    return path


def test_stages_are_devices_and_other_operators_follow(tower, tmp_path):
    path = annotated(tmp_path, {0: 0, 2: 1, 4: 2, 6: 3})
    assert split_of(tower, path).notation == "onnx"
    at = devices_of(tower, path)
    assert [at[f"/layers.{i}/fc/MatMul"] for i in range(4)] == [0, 1, 2, 3]
    assert [at[f"/layers.{i}/act/Relu"] for i in range(4)] == [0, 1, 2, 3]
    assert (at["x"], at["/head/Softmax"]) == (0, 3)


@pytest.mark.parametrize(
    ("stages", "fields", "words"),
    [
        ({}, {}, "no operator has a pipeline_stage"),
        ({0: 99}, {}, "operator '/layers.0/fc/MatMul' is in pipeline stage 99; stages are 0..3"),
        ({0: -1}, {}, "is in pipeline stage -1"),
        ({0: 3}, {"devices": 2}, "is in pipeline stage 3; stages are 0..1"),
        ({0: 0}, {"declared": "other"}, "names configuration 'pipe'; the model has ['other']"),
        ({0: (0, 1)}, {}, "is in pipeline stages 0 and 1"),
    ],
)
def test_our_validator_refuses_what_onnx_accepts(stages, fields, words, tower, tmp_path):
    with pytest.raises(SplitError, match=re.escape(words)):
        split_of(tower, annotated(tmp_path, stages, **fields))


def test_another_models_file_is_refused(tower, tmp_path):
    model = onnx.load(annotated(tmp_path, {0: 0}))
    model.graph.node[1].op_type = "Sigmoid"
    onnx.save(model, tmp_path / "other.onnx")
    with pytest.raises(SplitError, match="its operator 1 is Sigmoid, that of 'tower' is Relu"):
        split_of(tower, tmp_path / "other.onnx")
    (tmp_path / "broken.onnx").write_bytes(b"\xff\x00no")
    with pytest.raises(ReadError, match="not an ONNX model, or cut off"):
        split_of(tower, tmp_path / "broken.onnx")


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("gpu:0(layers.0, layers.1); gpu:1(layers.2, layers.3)", [0, 0, 1, 1]),
        ("gpu:0(layers); gpu:1(layers.3/)", [0, 0, 0, 1]),  # the longest part counts
        ("cuda(layers.0/fc/MatMul); gpu:2(/layers.)", [0, 2, 2, 2]),
    ],
)
def test_parts_of_names_of_onnxruntime(text, found, tower):
    at = devices_of(tower, text)
    assert [at[f"/layers.{i}/fc/MatMul"] for i in range(4)] == found


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("gpu:0(layers.7)", "'layers.7' is in no node name of 'tower'"),
        ("gpu:9(layers)", "is 9; devices of 'ring4' are 0..3"),
        ("gpu:0(=layers)", "'=layers': names match by their parts"),
    ],
)
def test_parts_that_do_not_fit_are_refused(text, words, tower):
    with pytest.raises(SplitError, match=re.escape(words)):
        split_of(tower, text)
