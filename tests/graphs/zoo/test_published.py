"""Problems of the zoo and what others published on them."""

from itertools import pairwise

import numpy as np
import pytest

from go_rl.core import ZooError
from go_rl.core.decisions import Decisions
from go_rl.costs.models.zoo_problem import priced_problem
from go_rl.graphs.zoo import zoo_entry, zoo_graph, zoo_names
from go_rl.graphs.zoo.best_known import (
    BestEntry,
    best_entries,
    best_known,
    decisions_digest,
    write_best,
)
from go_rl.graphs.zoo.problems import PARTS, zoo_problem, zoo_problems
from go_rl.objectives.makespan.workspace import MakespanWorkspace
from go_rl.objectives.ring.workspace import RingWorkspace

EXACT = {
    "vgg16": 138_357_544,  # Keras documentation, with batch statistics
    "resnet50": 25_636_712, "resnet152": 60_419_944, "inception-v3": 23_851_784,
    "inception-resnet-v2": 55_873_736, "xception": 22_910_480, "mobilenet-v1": 4_253_864,
    "mobilenet-v2": 3_538_984, "densenet121": 8_062_504, "densenet201": 20_242_984,
    "nasnet-mobile": 5_326_716, "nasnet-large": 88_949_818,
    "resnet18": 11_689_512 + 9_600, "resnet34": 21_797_672 + 17_024,  # torchvision, and statistics
    "vit-tiny": 5_717_416, "vit-base": 86_567_656, "vit-large": 304_326_632,  # timm
    "mixer-s16": 18_528_264, "mixer-b16-b8": 59_880_472,
    "dlrm-terabyte": 26 * 40000 * 128 + sum(
        a * b + b for widths in ((13, 512, 256, 128), (128 + 27 * 26 // 2, 1024, 1024, 512, 256, 1))
        for a, b in pairwise(widths)
    ),
}  # fmt: skip
MILLIONS = {
    "bert-tiny": 4.4, "bert-mini": 11.3, "bert-small": 29.1,  # Turc et al. 2019, table 1
    "bert-medium": 41.7,
    "bert-base": 110, "bert-large": 340,  # Devlin et al. 2018, section 3
    "gpt2-small": 124, "gpt2-medium": 355, "gpt2-large": 774,  # Radford et al. 2019, checkpoints
    "t5-small": 60, "t5-base": 220,  # Raffel et al. 2019, section 3.7
    "transformer-base": 65, "transformer-big": 213,  # Vaswani et al. 2017, table 3
    "transformer-xl-12-layers": 41,  # Dai et al. 2019, table 2
    "rnnlm-2-layers": 66,  # Zaremba et al. 2014, table 1
    "conformer-l": 115,  # Gulati et al. 2020, table 1: 118.8 with a decoder of 3.5
    "wav2vec2-base": 95,  # Baevski et al. 2020, section 4.2
    "whisper-tiny": 37.2, "whisper-base": 71.8,  # openai/whisper, what is trained of 39 M
}  # fmt: skip
"""Of words, the rows that a sequence of the graph does not reach are missing."""


@pytest.mark.parametrize("name", [*EXACT, *MILLIONS])
def test_weights_are_the_published_parameters(name):
    found = zoo_entry(name).weight_bytes / 4
    right = EXACT[name] if name in EXACT else pytest.approx(MILLIONS[name] * 1e6, rel=0.035)
    assert found == right


def test_training_forms_of_the_families_of_go_have_a_backward_pass():
    """Zhou et al. 2020, table 1."""
    stacks = [f"{family}-{n}-layers" for family in ("rnnlm", "gnmt", "transformer-xl")
              for n in (2, 4, 8)]  # fmt: skip
    forms = [f"{name}-training" for name in (*stacks, "wavenet-2x18", "wavenet-4x36")]
    assert set(forms) <= set(zoo_names("training-form"))
    for name in ("transformer-xl-2-layers-training", "wavenet-2x18-training"):
        assert 0.4 < zoo_graph(name).is_backward.mean() < 0.8


def test_names_are_unique_and_lead_back():
    problems = zoo_problems()
    assert len({p.name for p in problems}) == len(problems)
    assert all(zoo_problem(p.name) == p for p in problems)
    assert sum(len(zoo_problems(part)) for part in PARTS) == len(problems)


@pytest.mark.parametrize("objective", ["ring", "makespan"])
@pytest.mark.parametrize("what", ["family", "digest"])
def test_each_side_is_large_enough_and_no_family_or_graph_is_on_two(what, objective):
    """A graph under another name is the same graph."""
    sides = {part: zoo_problems(part, objective) for part in PARTS}
    found = [{getattr(zoo_entry(p.graph), what) for p in side} for side in sides.values()]
    assert sum(map(len, found)) == len(set.union(*found))
    assert len(sides["test"]) >= 20
    assert len({p.family for p in sides["test"]}) >= 6


def test_misspelt_names_are_answered_with_the_nearest():
    with pytest.raises(ZooError, match=r"did you mean 'nasnet-mobile\.ring36\.strict'"):
        zoo_problem("nasnet-mobil.ring36.strict")
    with pytest.raises(ZooError, match="unknown split 'tset'"):
        zoo_problems("tset")


def _entry(name, arrays):
    return BestEntry(
        name, "test", "f", "g", 2.0, 1.0, "annealing", 0, 3.0, decisions_digest(arrays)
    )


@pytest.fixture
def folder(tmp_path):
    device = {"device": np.array([0, 1], np.int16)}
    full = {**device, "priority": np.array([3, 1], np.int32)}
    arrays = {
        "a/device": device["device"],
        "b/device": device["device"],
        "b/priority": full["priority"],
    }
    write_best([_entry("b", full), _entry("a", device)], arrays, tmp_path)
    return tmp_path


def test_what_was_written_is_read(folder):
    assert list(best_entries(folder)) == ["a", "b"]
    plan = best_known("b", folder)
    assert plan.priority is not None
    assert (plan.device.tolist(), plan.priority.tolist()) == ([0, 1], [3, 1])
    assert plan.fusion_group is None
    assert plan.entry.gap == 1.0


def test_a_changed_index_or_plan_is_refused(folder):
    index = folder / "zoo-best-4.json"
    index.write_text(index.read_text().replace('"seconds": 2.0', '"seconds": 1.9', 1))
    with pytest.raises(ZooError, match="was changed after it was frozen"):
        best_known("a", folder)


def test_a_problem_without_a_plan_is_not_taken_for_a_misspelt_one(folder):
    with pytest.raises(ZooError, match=r"^zoo-best-4 has no plan of problem 'unet-deep\.ring36"):
        best_known("unet-deep.ring36.strict", folder)
    with pytest.raises(ZooError, match=r"no problem is called 'unet\.ring36.*did you mean 'unet-"):
        best_known("unet.ring36.strict", folder)


def test_frozen_plans_are_for_the_graphs_of_the_zoo():
    for name, entry in best_entries().items():
        problem = zoo_problem(name)
        assert entry.graph_digest == zoo_entry(problem.graph).digest
        assert (entry.part, entry.family) == (problem.part, problem.family)
        assert 0 < entry.bound <= entry.seconds


@pytest.mark.parametrize("objective", ["ring", "makespan"])
def test_a_frozen_plan_takes_the_seconds_it_says(objective):
    names = [n for n in best_entries() if zoo_problem(n).objective == objective]
    name = min(names, key=lambda n: zoo_entry(zoo_problem(n).graph).nodes)
    plan, problem = best_known(name), priced_problem(zoo_problem(name))
    workspace = (RingWorkspace if objective == "ring" else MakespanWorkspace)(problem)
    decisions = Decisions(
        plan.device[None],
        None if plan.priority is None else plan.priority[None].astype(np.int64),
        None if plan.fusion_group is None else plan.fusion_group[None].astype(np.int64),
    )
    assert workspace.evaluate(decisions).seconds[0] == pytest.approx(plan.entry.seconds, rel=1e-9)
