"""What load accepts, and models of other tools told by name."""

import json
import zipfile

import jax
import jax.numpy as jnp
import pytest
from jax import export
from onnx_models import parsed

from go_rl.core import GoRLError, ReadError
from go_rl.graphs.readers import guarded, load
from go_rl.graphs.readers.foreign import foreign_object


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


STDLIB = ("json", "pathlib", "os", "onnx", "numpy", "jaxlib", "resource")


@pytest.fixture
def planted(tmp_path, monkeypatch):
    """A working folder whose modules leave a trace when they are imported."""
    for name in STDLIB:
        (tmp_path / f"{name}.py").write_text(
            f"open({str(tmp_path / 'ran')!r}, 'a').write({name!r})"
        )
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_a_worker_imports_nothing_from_the_working_folder(planted):
    (planted / "in.mlir").write_text("module {}")
    guarded.run_guarded("go_rl.graphs.readers.hlo.stablehlo.stablehlo_worker", planted, 60.0)
    assert not (planted / "ran").exists()


EXPORTED = export.export(jax.jit(lambda x: x @ x))(jnp.ones((4, 4)))
HEADER = json.dumps({"w": {"dtype": "F32", "shape": [1], "data_offsets": [0, 4]}}).encode()
FILES = {
    "w.safetensors": (len(HEADER).to_bytes(8, "little") + HEADER + bytes(4), "weights without"),
    "model.h5": (b"\x89HDF\r\n\x1a\n" + bytes(8), "HDF5, as Keras saves"),
    "model.pkl": (b"\x80\x04\x95" + bytes(8), "a pickle, which is not opened"),
    "package.json": (b'{"name": "x", "version": "1"}', "JSON, but no model; of JSON, go_rl reads"),
}
ARCHIVES = {
    "model.pt2": ("m/archive_format", "an archive of PyTorch without a program; torch.export.save"),
    "old.pt2": ("serialized_exported_program.json", "an export of PyTorch before 2.8"),
    "script.pt": ("m/constants.pkl", "TorchScript; from the model"),
    "weights.pt": ("m/data.pkl", "a checkpoint of PyTorch, weights without a model"),
    "model.keras": ("model.weights.h5", "a Keras model; load it in Keras"),
}


@pytest.mark.parametrize(("name", "content", "said"), [(n, *each) for n, each in FILES.items()])
def test_files(tmp_path, name, content, said):
    (tmp_path / name).write_bytes(content)
    with pytest.raises(ReadError, match=said):
        load(tmp_path / name)


@pytest.mark.parametrize(("name", "member", "said"), [(n, *each) for n, each in ARCHIVES.items()])
def test_archives(tmp_path, name, member, said):
    with zipfile.ZipFile(tmp_path / name, "w") as archive:
        archive.writestr(member, b"x")
    with pytest.raises(ReadError, match=said):
        load(tmp_path / name)


def test_a_saved_model(tmp_path):
    (tmp_path / "saved_model.pb").write_bytes(b"x")
    with pytest.raises(ReadError, match=r"tf2onnx\.convert --saved-model"):
        load(tmp_path)


class Module:
    """Stands for torch's, which is not installed."""

    def __call__(self, x):
        return x


Module.__module__, Module.__qualname__ = "torch.nn.modules.module", "Module"


class Network(Module):
    """A user's model."""


def test_objects_and_attributes(tmp_path):
    assert str(foreign_object(Network())).startswith("a module of PyTorch; torch.export.save")
    assert str(foreign_object(len)).startswith("a function; go_rl.trace")
    assert str(foreign_object(EXPORTED)).startswith("an export of JAX; open('model.jax', 'wb')")
    assert foreign_object(bytes(EXPORTED.serialize())) == "bytes; write them to a file"
    assert foreign_object(7) is None
    (tmp_path / "nets.py").write_text(
        "class Module:\n    def __call__(self, x): return x\n"
        "Module.__module__ = 'torch.nn.modules.module'\n"
        "class Net(Module): pass\nnet = Net()\nmake = lambda: Net()\n"
    )
    for name in ("net", "make"):
        with pytest.raises(GoRLError, match=r"a module of PyTorch, which is not installed|forward"):
            load(f"{tmp_path / 'nets.py'}:{name}", inputs={"x": (2, 3)})
