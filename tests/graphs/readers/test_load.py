import pytest
from onnx_models import parsed

from go_rl.core import ReadError
from go_rl.graphs.readers import load

PROTOBUF_MODEL = b"\x08\x0a\x12\x04jaxx\x42\x02\x10\x15\x3a\x28" + b"\0" * 10
BAD_FILES = [
    (b"", "is empty"),
    (b"  \n\t \n", "is empty"),
    (bytes(range(256)) * 40, "not a model"),
    (b"\xff" * 1000, "not a model"),
    (b"PK\x03\x04rubbish", "truncated or damaged"),
    (PROTOBUF_MODEL, "truncated"),
    (b"hello world\n", "not a model"),
    (b'{"a": 1}', "not a dnn-partitioning graph"),
    (b"[1, 2]", "not a dnn-partitioning graph"),
    (b'{"nodes": [', "not valid JSON"),
    (b"[" * 100_000, "not valid JSON"),
    (b'{"nodes": "\xff\xfe"}', "not a model|not valid JSON"),
    (b"import numpy as np\n", "not a model"),
]


@pytest.mark.parametrize(("content", "message"), BAD_FILES)
def test_bad_content_is_one_clear_error(refused, content, message):
    refused(content, message)


def test_missing_file_and_directory(tmp_path):
    with pytest.raises(ReadError, match="no such file; accepted are ONNX, a PyTorch export"):
        load(tmp_path / "absent.onnx")
    with pytest.raises(ReadError, match="a directory; accepted are"):
        load(tmp_path)


@pytest.fixture
def onnx_file(tmp_path):
    """A real ONNX model under a name that says otherwise, with text inside that says otherwise."""
    model = parsed("(float[batch,4] x) => (float[batch,4] y) { y = Relu(x) }")
    model.graph.node[0].name, model.doc_string = "func.func @module", "\nmodule @m\n"
    path = tmp_path / "model.json"
    path.write_bytes(model.SerializeToString())
    return path


def test_onnx_is_recognised_and_gets_its_dims(onnx_file, in_process):
    graph = load(onnx_file, dims={"batch": 3})
    assert graph.flops.sum() == 12


def test_a_cut_onnx_file(onnx_file):
    whole = onnx_file.read_bytes()
    for size in (len(whole) // 4, len(whole) // 2, len(whole) - 1):
        onnx_file.write_bytes(whole[:size])
        with pytest.raises(ReadError, match=r"truncated|not a model") as error:
            load(onnx_file)
        assert str(onnx_file) in str(error.value)


def test_a_jax_function_by_name(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "tiny_model_for_load.py").write_text(
        "import jax.numpy as jnp\n"
        "def make(batch=2):\n"
        "    return (lambda x: jnp.tanh(x) + x), (jnp.ones((batch, 4)),)\n"
    )
    graph = load("tiny_model_for_load:make", dims={"batch": 3})
    assert graph.flops.sum() == 12
    with pytest.raises(ReadError, match="training=True applies to PipeDream"):
        load("tiny_model_for_load:make", training=True)
    with pytest.raises(ReadError, match="no_such_module_at_all"):
        load("no_such_module_at_all:make")
