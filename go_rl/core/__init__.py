"""The nouns: graph, hardware, problem, plan, evaluation, and their errors."""

from go_rl.core.errors import (
    CheckpointError,
    EnvironmentUseError,
    ExecutionError,
    GoRLError,
    GraphError,
    HardwareError,
    MissingDependencyError,
    PlanError,
    PolicyError,
    ProblemError,
    ReadError,
    RecordError,
    SearchError,
    SolverError,
    SplitError,
    TrainingError,
    UnknownOperatorError,
    ZooError,
)
from go_rl.core.evaluation import OPTIMAL_GAP, Evaluation, Fidelity, Means, Status, proved_optimal
from go_rl.core.graph.check_graph import check_graph
from go_rl.core.graph.element_type import ElementType
from go_rl.core.graph.geometry import GEOMETRY, Geometry
from go_rl.core.graph.op_graph import FREE, NO_DIM, NO_TIED_WEIGHTS, NodeId, OpGraph
from go_rl.core.graph.op_kind import OpKind
from go_rl.core.hardware.hardware import MAX_DEVICES, Device, Engine, Hardware
from go_rl.core.hardware.links import LinkGroup, Links, LinkTable, Topology
from go_rl.core.hardware.presets import load_hardware
from go_rl.core.objective import DECISIONS, Objective
from go_rl.core.optimizer import OPEN_SAMPLES, Budget, Optimizer, Progress
from go_rl.core.plan import CurvePoint, Plan, plan_for, with_bound
from go_rl.core.problem import RULE_SETS, KernelPrices, Problem, Rules, decision_names, rule_set

__all__ = [
    "DECISIONS",
    "FREE",
    "GEOMETRY",
    "MAX_DEVICES",
    "NO_DIM",
    "NO_TIED_WEIGHTS",
    "OPEN_SAMPLES",
    "OPTIMAL_GAP",
    "RULE_SETS",
    "Budget",
    "CheckpointError",
    "CurvePoint",
    "Device",
    "ElementType",
    "Engine",
    "EnvironmentUseError",
    "Evaluation",
    "ExecutionError",
    "Fidelity",
    "Geometry",
    "GoRLError",
    "GraphError",
    "Hardware",
    "HardwareError",
    "KernelPrices",
    "LinkGroup",
    "LinkTable",
    "Links",
    "Means",
    "MissingDependencyError",
    "NodeId",
    "Objective",
    "OpGraph",
    "OpKind",
    "Optimizer",
    "Plan",
    "PlanError",
    "PolicyError",
    "Problem",
    "ProblemError",
    "Progress",
    "ReadError",
    "RecordError",
    "Rules",
    "SearchError",
    "SolverError",
    "SplitError",
    "Status",
    "Topology",
    "TrainingError",
    "UnknownOperatorError",
    "ZooError",
    "check_graph",
    "decision_names",
    "load_hardware",
    "plan_for",
    "proved_optimal",
    "rule_set",
    "with_bound",
]
