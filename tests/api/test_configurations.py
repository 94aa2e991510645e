"""Values that no configuration takes: refused by name when it is made."""

import re

import pytest

import go_rl
from go_rl.api.calibrate_programs import CalibrateProgramsConfig
from go_rl.api.options import FineTuneOptions, OptimizeOptions
from go_rl.api.this_device import CalibrateConfig
from go_rl.api.training.predictors import TrainFlagsConfig, TrainKernelsConfig
from go_rl.api.training.programs import TrainProgramsConfig
from go_rl.compare.benchmark.config import EvaluateConfig
from go_rl.core import (
    Budget,
    ExecutionError,
    GoRLError,
    PolicyError,
    ReadError,
    SearchError,
    TrainingError,
)
from go_rl.costs.kernels.network import KernelNetworkConfig
from go_rl.costs.kernels.ranks.network import RankNetworkConfig
from go_rl.costs.kernels.ranks.training import RankTrainConfig
from go_rl.costs.kernels.training import KernelTrainConfig
from go_rl.costs.operators.predictor import OperatorFitConfig
from go_rl.costs.programs.learn.training import ProgramTrainConfig
from go_rl.costs.programs.learn.transfer.tuner_network import TunerSizes
from go_rl.costs.programs.learn.transfer.tuner_training import TunerRun
from go_rl.costs.timing.config import (
    ChoiceConfig,
    CollectConfig,
    ProgramsConfig,
    SamplingConfig,
    TimingConfig,
)
from go_rl.costs.trees.candidate_ranks import CandidateRanksConfig
from go_rl.graphs.readers.jax.inline import JaxOptions
from go_rl.objectives.makespan.methods.hdp.config import HDPConfig
from go_rl.plans.pipeline.config import PipelineConfig
from go_rl.policy.config import SEGMENT_UNIT, RingPolicyConfig
from go_rl.policy.learn.config import (
    DispatchTrainConfig,
    FineTuneConfig,
    NodesTrainConfig,
    OrdersTrainConfig,
    PPOConfig,
    RingTrainConfig,
)
from go_rl.policy.learn.fine_tune import FineTuned
from go_rl.policy.learn.processes.config import ProcessConfig
from go_rl.policy.policy_search import PolicySearch
from go_rl.tuning.config import TuneConfig, TuneProgramsConfig, TuningError
from go_rl.tuning.loop.belief.curve_belief import CurveBelief
from go_rl.tuning.loop.slots import SlotConfig
from go_rl.tuning.tuners.chameleon import ChameleonConfig
from go_rl.tuning.tuners.evolutionary_search import EvolutionConfig
from go_rl.tuning.tuners.online_scorer import OnlineScorerConfig
from go_rl.tuning.tuners.simulated_annealing import AnnealingConfig

NAN, INF = float("nan"), float("inf")
WRONG = {
    TrainingError: [
        (TrainProgramsConfig, {"held_out": ("resnet50",)}, "held_out is for by_model and by_targ"),
        (TrainProgramsConfig, {"split": "by_target"}, "by_target needs the one target"),
        (TrainProgramsConfig, {"updates": 0}, "updates must be >= 1"),
        (CalibrateProgramsConfig, {"tasks": 2}, "tasks must be >= 8, not 2"),
        (CalibrateProgramsConfig, {"minutes": 0.0}, "minutes must be in (0, 1440], not 0"),
        (CalibrateProgramsConfig, {"most_away": 3.0}, "most_away must be in (0, 1], not 3.0"),
        (CalibrateConfig, {"minutes": 0.0}, "minutes must be in"),
        *((RankTrainConfig, {name: value}, name) for name, value in (
            ("updates", 0), ("batch", 0), ("learning_rate", 0.0), ("forget", 1.0), ("most", 0.0))),
        (RankNetworkConfig, {"head": 0}, "head must be >= 1"),
        (RankNetworkConfig, {"bins": -1}, "bins must be >= 0"),
        *((KernelTrainConfig, {name: value}, name) for name, value in (
            ("updates", 0), ("nodes", 159), ("learning_rate", 0.0), ("forget", 1.0))),
        (KernelNetworkConfig, {"width": 6}, "width must be a multiple of 4, not 6"),
        *((SamplingConfig, {name: value}, name) for name, value in (
            ("kernels", 0), ("fusions", ()), ("fusions", (0.0, 1.5)), ("most_flops", 0.0))),
        *((CollectConfig, {name: value}, name) for name, value in (
            ("target", " "), ("share", 0.0), ("share", 1.5), ("round", -1), ("core", -1),
            ("timeout", 0.0))),
        (CollectConfig, {"least_seconds": NAN}, "least_seconds must be >= 0, not nan"),
        (CollectConfig, {"most_seconds": 0.0}, "most_seconds must be > 0, not 0.0"),
        (TimingConfig, {"seconds": 0.0}, "measure: seconds must be > 0"),
        (TimingConfig, {"least_calls": 0}, "measure: least_calls must be >= 1"),
        (TimingConfig, {"least_calls": 9, "most_calls": 8},
         "measure: most_calls must be no fewer than least_calls"),
        *((TimingConfig, {"variation": value}, "variation must be in") for value in (
            -0.1, 1.0, NAN)),
        (OperatorFitConfig, {"updates": 0}, "updates must be positive"),
        (ChoiceConfig, {"choose": "disagreement"}, "measure: weights"),
        (ChoiceConfig, {"choose": "kmeans", "weights": "w"}, "measure: weights"),
        (ChoiceConfig, {"tasks": 0}, "measure: tasks"),
        (ChoiceConfig, {"tasks": 5}, "measure: tasks"),
        (ProgramsConfig, {"candidates": 0}, "candidates must be >= 1"),
        (ProgramsConfig, {"build_core": -1}, "build_core must be >= 0, not -1"),
        (ProgramTrainConfig, {"batch": 0}, "batch must be >= 1"),
        (ProgramTrainConfig, {"updates": 0}, "updates must be >= 1"),
        (ProgramTrainConfig, {"cmd_weight": -1.0}, "must be >= 0"),
        *((CandidateRanksConfig, {name: value}, name) for name, value in (
            ("trees", 0), ("bins", 1), ("learning_rate", 0.0), ("column_share", 1.1))),
        (TunerSizes, {"units": 5, "heads": 4}, "must be a multiple of heads"),
        (TunerSizes, {"unrolling": 0}, "unrolling must be >= 1, not 0"),
        (TunerRun, {"loss": "rms"}, "no loss 'rms'; did you mean 'rmse'"),
        (TunerRun, {"epochs": 0}, "epochs must be >= 1"),
        (ProcessConfig, {"coordinator": "host:1"}, "count and index must be given"),
        (ProcessConfig, {"count": 2}, "coordinator and index must be given"),
        *((ProcessConfig, {"coordinator": where, "count": count, "index": index}, message)
          for where, count, index, message in (
            ("host", 2, 0, "must be HOST:PORT"), ("host:99999", 2, 0, "port of 1 to 65535"),
            ("host:1", 2, 2, "index 2 is out of range"), ("host:1", 2, -1, "index must be >= 0"),
            ("host:1", 0, 0, "count must be >= 1"))),
        (ProcessConfig, {"launcher": "slrum"}, "did you mean 'slurm'"),
        (ProcessConfig, {"lost_seconds": 0}, "lost_seconds must be >= 1"),
        (PPOConfig, {"learning_rate": 0.0}, "ppo: learning_rate must be > 0, not 0.0"),
        (PPOConfig, {"learning_rate": NAN}, "ppo: learning_rate must be > 0, not nan"),
        (PPOConfig, {"clip": -0.1}, "ppo: clip must be > 0, not -0.1"),
        (PPOConfig, {"gradient_norm": 0.0}, "ppo: gradient_norm must be > 0"),
        (PPOConfig, {"entropy": -1.0}, "ppo: entropy must be >= 0, not -1.0"),
        (PPOConfig, {"decay_updates": -1}, "ppo: decay_updates must be >= 0, not -1"),
        (PPOConfig, {"epochs": 0}, "ppo: epochs must be >= 1, not 0"),
        (FineTuneConfig, {"batch": 1}, "fine-tuning: batch must be >= 2, not 1"),
        (RingTrainConfig, {"samples": 1}, "train: samples must be >= 2, not 1"),
        (RingTrainConfig, {"solver": "guess"},
         "solver must be one of sample, fix, sample-nodes, fix-nodes, none, not 'guess'"),
        (RingTrainConfig, {"updates": -1}, "train: updates must be >= 1, not -1"),
        (RingTrainConfig, {"hardware": ()}, "train: hardware needs at least one entry"),
        (RingTrainConfig, {"rules": ("strickt",)}, "did you mean 'strict'"),
        (NodesTrainConfig, {"updates": 0}, "train: updates must be >= 1, not 0"),
        (NodesTrainConfig, {"validation_hardware": ()}, "validation_hardware needs at"),
        (DispatchTrainConfig, {"decide": ((),)}, "name some of placement"),
        (DispatchTrainConfig, {"decide": (("fussion",),)}, "did you mean 'fusion'"),
        (NodesTrainConfig, {"generated": 0, "traced": "graphs"},
         "traced is the folder of generated graphs; give"),
        (NodesTrainConfig, {"generated": -1}, "generated must be >= 0, not -1"),
        *((NodesTrainConfig, {"generated": 3, name: value}, f"{name} has no meaning beside gener")
          for name, value in (("further_share", 0.5), ("further", ()), ("graphs", ("/a.npz",)),
                              ("validation", "validation"))),
        *((make, {"generated": 0, "zoo": False}, "leave nothing to learn")
          for make in (OrdersTrainConfig, DispatchTrainConfig)),
        (DispatchTrainConfig, {"best_of": (1, 99)}, "more samples than the policy has prototypes"),
        (TuneConfig, {"core": -1}, "core"), (TuneConfig, {"timeout": 0.0}, "timeout"),
    ],
    GoRLError: [
        (make, {name: text}, f"{name} must be a tuple such as ({text!r},), not {text!r}")
        for make, name, text in (
            (DispatchTrainConfig, "hardware", "p100x2"), (RingTrainConfig, "graphs", "g/vae.npz"),
            (OrdersTrainConfig, "cost", "analytical"), (NodesTrainConfig, "decide", "placement"),
            (CalibrateConfig, "networks", "vae"), (ProgramsConfig, "codegen", "x86-64-v3"),
            (SamplingConfig, "fusions", "0.5"), (TrainProgramsConfig, "held_out", "resnet50"))
    ] + [
        (NodesTrainConfig, {"decide": ("fusion",)}, "decide[0] must be a tuple such as ('f"),
        (EvaluateConfig, {"graphs": "zoo:vae"}, "evaluate: graphs must be a tuple such as ('zoo:v"),
        (EvaluateConfig, {"graphs": ("a",), "methods": "policy"}, "methods must be a tuple"),
        (RingTrainConfig, {"hardware": 5}, "train: hardware must be a tuple, not 5"),
    ],
    TuningError: [
        (TuneConfig, {"minutes": 0.0}, "minutes"), (TuneConfig, {"minutes": INF}, "minutes"),
        (TuneConfig, {"k_graph": 0}, "k_graph"), (TuneConfig, {"k_kernel": 0}, "k_kernel"),
        (TuneConfig, {"cost": "roofline"}, "cost must be learned"),
        (TuneConfig, {"cost": "learned:"}, "cost must be learned"),
        (TuneConfig, {"trials": 0}, "trials must be >= 1"),
        *((TuneProgramsConfig, {"minutes": value}, "minutes must be finite and > 0")
          for value in (0.0, NAN)),
        (TuneProgramsConfig, {"trials": 0}, "trials must be >= 1"),
        (TuneProgramsConfig, {"batch": 0}, "batch must be >= 1"),
        (TuneProgramsConfig, {"memory": 5.0}, "memory must be >= 1e"),
        *((TuneProgramsConfig, {"only_heavy": value}, f"only_heavy must be in (0, 1], not {value}")
          for value in (0.0, 1.5)),
        (TuneProgramsConfig, {"weights": "programs-5-cdmpp"},
         "weights are of the guides cdmpp, code-trees and tran"),
        (SlotConfig, {"seconds": 0.0}, "seconds must be finite and > 0"),
        (SlotConfig, {"seconds": INF}, "seconds must be finite and > 0"),
        (SlotConfig, {"batch": 0}, "batch must be >= 1"),
        (SlotConfig, {"patience": 0}, "patience must be >= 1"),
        (SlotConfig, {"seed": -1}, "seed must be >= 0"),
        (SlotConfig, {"slot": 0.0}, "slot must be finite and > 0"),
        (SlotConfig, {"trials": 0}, "trials must be >= 1, not 0"),
        (SlotConfig, {"heavy": 0.0}, "heavy must be in (0, 1], not 0"),
        (CurveBelief, {"family": "log-pwer"}, "family 'log-pwer'; did you mean 'log-power'"),
        (CurveBelief, {"walkers": 7}, "walkers >= 8"),
        (CurveBelief, {"burn_in": 500}, "burn_in must be below steps"),
        *((AnnealingConfig, {name: value}, name) for name, value in (
            ("chains", 0), ("random_share", 1.5), ("temperature", NAN))),
        *((EvolutionConfig, {name: value}, name) for name, value in (
            ("effort", 0), ("best_share", -0.1), ("pressure", INF))),
        *((ChameleonConfig, {name: value}, name) for name, value in (
            ("agents", 0), ("discount", 2.0), ("learning_rate", 0.0))),
        (OnlineScorerConfig, {"refit_every": 1}, "refit_every"),
    ],
    SearchError: [
        (FineTuned, {"samples": 0}, "samples must be >= 1, not 0"),
        (Budget, {}, "needs samples, seconds or both"),
        (Budget, {"samples": 0}, "samples must be >= 1, not 0"),
        (Budget, {"seconds": 0.0}, "seconds must be finite and > 0"),
        (Budget, {"seconds": NAN}, "seconds must be finite and > 0"),
        (Budget, {"seconds": INF}, "seconds must be finite and > 0, not inf"),
        (HDPConfig, {"groups": 0}, "groups must be a whole number >= 1, not 0"),
        (HDPConfig, {"placements": True}, "placements must be a whole number >= 1, not True"),
        (HDPConfig, {"noise_updates": -1}, "noise_updates must be a whole number >= 0"),
        (HDPConfig, {"hidden": 33}, "hidden must be even, not 33"),
        (HDPConfig, {"adjacency": 7}, "adjacency must be even"),
        (HDPConfig, {"learning_rate": -0.1}, "learning_rate must be finite and >= 0"),
        (HDPConfig, {"temperature": NAN}, "temperature must be finite and > 0"),
        (HDPConfig, {"failing_seconds": INF}, "failing_seconds must be finite"),
        (HDPConfig, {"noise": -0.1}, "noise must be finite and >= 0"),
        (HDPConfig, {"baseline_decay": 1.5}, "baseline_decay must be at most 1"),
    ],
    PolicyError: [
        *((make, {"control": "untraind"}, "did you mean 'untrained'")
          for make in (PolicySearch, FineTuned)),
        (EvaluateConfig, {"graphs": ("a",), "hardware": ("b",), "control": "blnd"},
         "did you mean 'blind'"),
        (PolicySearch, {"solver": "sample-node"}, "solver must be one of sample, fix"),
        (RingPolicyConfig, {"hidden": 0}, "policy: hidden must be a whole number >= 1, not 0"),
        (RingPolicyConfig, {"hidden": 10, "heads": 4},
         "policy: hidden 10 must be a multiple of heads 4"),
        (RingPolicyConfig, {"sage_layers": -1}, "sage_layers must be a whole number >= 0, not -1"),
        (RingPolicyConfig, {"iterations": 0}, "iterations must be a whole number >= 1, not 0"),
        (RingPolicyConfig, {"segment": 0}, "policy: segment must be a whole number >= 1, not 0"),
        (RingPolicyConfig, {"segment": 96}, f"segment must divide {SEGMENT_UNIT}, not 96"),
    ],
    ReadError: [(JaxOptions, {name: value}, name) for name, value in (
        ("unknown", "skip"), ("unroll_limit", -1), ("trip_count", -1))],
    ExecutionError: [(PipelineConfig, {name: value}, "run: ") for name, value in (
        ("samples", 1), ("warm_up", -1), ("slots", 0), ("timeout", 0.0))],
}  # fmt: skip
"""Configurations, wrong fields, and words of what is said, by the error."""
CASES = [(error, *row) for error, rows in WRONG.items() for row in rows]


@pytest.mark.parametrize(("error", "make", "wrong", "said"), CASES)
def test_a_wrong_field_is_named(error, make, wrong, said, unchecked_types):
    with pytest.raises(error, match=re.escape(said)):
        make(**wrong)


LARGEST = 2**62 - 1
SEEDED = (
    CalibrateConfig, CalibrateProgramsConfig, DispatchTrainConfig, FineTuneOptions,
    NodesTrainConfig, OptimizeOptions, OrdersTrainConfig, PipelineConfig, ProgramsConfig,
    RingTrainConfig, SamplingConfig, TrainFlagsConfig, TrainKernelsConfig, TrainProgramsConfig,
    TuneConfig, TuneProgramsConfig,
)  # fmt: skip


@pytest.mark.parametrize("make", SEEDED)
def test_seeds_that_no_generator_takes_are_refused(make):
    assert make(seed=LARGEST).seed == LARGEST
    for seed in (-1, LARGEST + 1):
        with pytest.raises(GoRLError, match=f"seed must be >= 0 and below 2.62, not {seed}"):
            make(seed=seed)


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (("x", "runs"), "config must be a RingTrainConfig or OrdersTrainConfig or"),
        ((RingTrainConfig(), 5), "pretrain: folder must be a text or a path, not 5"),
        (
            (RingTrainConfig(), "runs", "a.onnx"),
            "pretrain: graphs must be a tuple such as ('a.onnx',)",
        ),
    ],
)
def test_pretrain_names_an_argument_of_another_type(given, said, unchecked_types, tmp_path):
    config, folder, *graphs = given
    with pytest.raises(TrainingError, match=re.escape(said)):
        go_rl.pretrain(config, folder, graphs=graphs[0] if graphs else None)
