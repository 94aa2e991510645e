"""A folder's pace: written, read, and refused on another processor."""

import pytest

from go_rl.core import RecordError
from go_rl.costs.timing import worker as measuring_worker
from go_rl.costs.timing.config import CollectConfig
from go_rl.costs.timing.core_speed import FolderPace, pace_path, read_pace, write_pace
from go_rl.costs.timing.worker import folder_pace


def test_what_is_written_is_read(tmp_path):
    path = pace_path(tmp_path / "new", "cpu-1")
    write_pace(path, FolderPace(5e-6, "Acme family 1 model 2"))
    assert read_pace(path) == FolderPace(5e-6, "Acme family 1 model 2")
    path.write_text('{"full_pace_seconds": 5e-6}')
    assert read_pace(path) == FolderPace(5e-6, "")


def test_a_folder_is_of_one_processor(tmp_path, monkeypatch):
    """Another one may measure there under a name of its own, and an unknown one as it likes."""
    config = CollectConfig(target="desk")
    path = pace_path(tmp_path, "desk")
    write_pace(path, FolderPace(5e-6, "Acme family 1 model 2"))
    monkeypatch.setattr(measuring_worker, "processor_name", lambda: "Acme family 1 model 3")
    with pytest.raises(RecordError, match=r"pace-desk\.json: 'desk' was measured on a proc.*--tar"):
        folder_pace(tmp_path, config)
    for here in ("Acme family 1 model 2", ""):
        monkeypatch.setattr(measuring_worker, "processor_name", lambda here=here: here)
        assert folder_pace(tmp_path, config) == 5e-6
    write_pace(path, FolderPace(5e-6, ""))
    monkeypatch.setattr(measuring_worker, "processor_name", lambda: "Acme family 1 model 3")
    assert folder_pace(tmp_path, config) == 5e-6


def test_of_another_platform_the_processor_does_not_matter(tmp_path, monkeypatch):
    monkeypatch.setattr(measuring_worker, "processor_name", lambda: "Acme family 1 model 3")
    write_pace(pace_path(tmp_path, "gpu-1"), FolderPace(5e-6, "another"))
    assert folder_pace(tmp_path, CollectConfig(target="gpu-1", platform="cuda")) == 5e-6
