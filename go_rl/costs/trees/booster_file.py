"""XGBoost's boosters as JSON files of one format each. Needs XGBoost, an optional extra:
``pip install 'go_rl[tuning]'``.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from go_rl.core import CheckpointError, MissingDependencyError
from go_rl.core.files.strict_json import read_json
from go_rl.core.files.whole_file import write_text


def import_xgboost() -> Any:
    """Return the library.

    Raises:
        MissingDependencyError: it is not installed.
    """
    try:
        import xgboost
    except ImportError as error:
        raise MissingDependencyError(
            "boosted trees of programs need XGBoost: pip install 'go_rl[tuning]'"
        ) from error
    return xgboost


def save_booster(booster: Any, path: Path, kind: str) -> None:
    """Write a booster; a reader never sees half of it.

    Args:
        booster: XGBoost's.
        path: of the file.
        kind: the format, which `load_booster` asks for.

    Raises:
        CheckpointError: the file cannot be written.
    """
    model = json.loads(booster.save_raw("json").decode())
    try:
        write_text(path, json.dumps({"format": kind, "model": model}))
    except OSError as error:
        raise CheckpointError(f"{path}: cannot be written ({error.strerror})") from error


def load_booster(source: str | Path, kind: str, what: str) -> Any:
    """Return the booster that `save_booster` wrote.

    Args:
        source: path of the file.
        kind: the format.
        what: the predictor in words, for messages.

    Raises:
        CheckpointError: there is no such file, it is damaged, or of another format.
        MissingDependencyError: XGBoost is not installed.
    """
    xgboost = import_xgboost()
    try:
        document = read_json(source)
        if not isinstance(document, dict) or document.get("format") != kind:
            raise ValueError(f"the format is not {kind}")
        booster = xgboost.Booster({"nthread": 1})
        booster.load_model(bytearray(json.dumps(document["model"]).encode()))
    except (OSError, KeyError, ValueError, xgboost.core.XGBoostError) as error:
        raise CheckpointError(f"{source}: is no file of {what} ({error})") from error
    return booster
