"""Files beside a model are never run while it is read."""

import onnx
import pytest
from onnx_models import parsed

import go_rl
from go_rl.graphs.readers import guarded

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


def test_an_onnx_model_beside_planted_modules_is_read(planted):
    onnx.save(parsed("(float[2,3] x) => (float[2,3] y) { y = Relu(x) }"), "m.onnx")
    assert go_rl.load("m.onnx").op_type == ("Input", "Relu")
    assert not (planted / "ran").exists()
