"""Models are read in this process: it is not their readers that are tested."""

import pytest


@pytest.fixture(autouse=True)
def reads_in_process(in_process: None) -> None:
    """Each ONNX file would otherwise be completed in a process of its own."""
