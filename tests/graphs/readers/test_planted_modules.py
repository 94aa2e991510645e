"""Files beside a model are never run while it is read."""

import pytest

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
