"""Models in installed packages are read, planned, and have the shapes that ONNX Runtime runs."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from experiments.readers.packaged_models import FOLDERS, PACKAGES, packaged_models, row_of

INSTALLED = [
    path
    for folder in dict.fromkeys(map(Path, sys.path))
    if folder.name in ("site-packages", "dist-packages")
    for path in packaged_models(folder)
]


def test_every_package_has_its_folder():
    assert [name.replace("-", "_") for name in PACKAGES] == [
        "livekit_plugins_silero" if name == "livekit" else name for name in FOLDERS
    ]


@pytest.mark.slow
@pytest.mark.skipif(not INSTALLED, reason=f"install one of {', '.join(PACKAGES)} to try its models")
@pytest.mark.parametrize("path", INSTALLED, ids=lambda path: path.stem)
def test_a_packaged_model_is_read_planned_and_shaped_as_it_runs(path):
    pytest.importorskip("onnxruntime")
    row = row_of(path, path.stem)
    assert row.nodes > 0, row.said
    assert row.plan_ms > 0
    right, compared = row.shapes.split(" of ")
    assert right == compared
