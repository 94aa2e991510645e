"""go_rl: learned graph optimisation for machine-learning compilers.

The names below are loaded when first used, so that ``import go_rl`` stays fast.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from go_rl.api.calibrate_programs import calibrate_programs
    from go_rl.api.evaluate import evaluate
    from go_rl.api.load import load, retyped, trace
    from go_rl.api.measure import measure_kernels, measure_programs
    from go_rl.api.optimize import methods, optimize
    from go_rl.api.plans.audit import audit_session
    from go_rl.api.plans.check import check, execute, explain, problem_of
    from go_rl.api.plans.check_split import check_split
    from go_rl.api.plans.iree import execute_iree
    from go_rl.api.plans.sinks import export_sink
    from go_rl.api.plans.stages import export_stages, run_stages
    from go_rl.api.plans.view import view
    from go_rl.api.predict import predict, predict_everywhere, train_operators
    from go_rl.api.records import export_store, list_records, merge_stores
    from go_rl.api.this_device import calibrate, predict_this
    from go_rl.api.this_programs import predict_programs
    from go_rl.api.training.finetune import finetune
    from go_rl.api.training.predictors import train_flags, train_kernels
    from go_rl.api.training.pretrain import pretrain, save_weights
    from go_rl.api.training.programs import train_programs
    from go_rl.api.training_iteration import TrainingIteration
    from go_rl.api.tune import tune_kernels, tune_programs
    from go_rl.api.zoo import zoo_entry, zoo_names

_MODULES = {
    "TrainingIteration": "training_iteration",
    "audit_session": "plans.audit",
    "calibrate": "this_device",
    "calibrate_programs": "calibrate_programs",
    "check": "plans.check",
    "check_split": "plans.check_split",
    "evaluate": "evaluate",
    "execute": "plans.check",
    "execute_iree": "plans.iree",
    "explain": "plans.check",
    "export_sink": "plans.sinks",
    "export_stages": "plans.stages",
    "export_store": "records",
    "finetune": "training.finetune",
    "list_records": "records",
    "load": "load",
    "measure_kernels": "measure",
    "measure_programs": "measure",
    "merge_stores": "records",
    "methods": "optimize",
    "optimize": "optimize",
    "predict": "predict",
    "predict_everywhere": "predict",
    "predict_programs": "this_programs",
    "predict_this": "this_device",
    "pretrain": "training.pretrain",
    "problem_of": "plans.check",
    "retyped": "load",
    "run_stages": "plans.stages",
    "save_weights": "training.pretrain",
    "trace": "load",
    "train_flags": "training.predictors",
    "train_kernels": "training.predictors",
    "train_operators": "predict",
    "train_programs": "training.programs",
    "tune_kernels": "tune",
    "tune_programs": "tune",
    "view": "plans.view",
    "zoo_entry": "zoo",
    "zoo_names": "zoo",
}
"""Modules of `go_rl.api`, with the names that each defines."""
__all__ = [
    "TrainingIteration",
    "audit_session",
    "calibrate",
    "calibrate_programs",
    "check",
    "check_split",
    "evaluate",
    "execute",
    "execute_iree",
    "explain",
    "export_sink",
    "export_stages",
    "export_store",
    "finetune",
    "list_records",
    "load",
    "measure_kernels",
    "measure_programs",
    "merge_stores",
    "methods",
    "optimize",
    "predict",
    "predict_everywhere",
    "predict_programs",
    "predict_this",
    "pretrain",
    "problem_of",
    "retyped",
    "run_stages",
    "save_weights",
    "trace",
    "train_flags",
    "train_kernels",
    "train_operators",
    "train_programs",
    "tune_kernels",
    "tune_programs",
    "view",
    "zoo_entry",
    "zoo_names",
]


def __getattr__(name: str) -> Any:
    if name not in _MODULES:
        raise AttributeError(f"module 'go_rl' has no attribute {name!r}; it has {__all__}")
    from importlib import import_module

    from go_rl.core.installed import check_installed

    check_installed()
    return getattr(import_module(f"go_rl.api.{_MODULES[name]}"), name)


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])
