"""Plans submitted to a leaderboard: simulated and checked anew, kept when better, refused in one
sentence, and a list that is what its plans make it."""

from dataclasses import replace
from pathlib import Path

import pytest

from go_rl.api.zoo import named_problems, rebuild_board, submit_plan
from go_rl.compare import submitted_plans
from go_rl.compare.submitted_plans import (
    differences,
    frozen_differences,
    frozen_plan,
    named_problem,
)
from go_rl.core import Budget, Plan, PlanError, ZooError, load_hardware
from go_rl.costs.models.zoo_problem import priced_problem
from go_rl.graphs.zoo import leaderboard
from go_rl.graphs.zoo.best_known import BEST_VERSION, best_entries
from go_rl.graphs.zoo.problems import zoo_problem
from go_rl.objectives.methods import Greedy

RING = "gcn-16-layers.ring16.strict"
PLACED, ALL = "wide-and-deep-training.p100x4.placement", "wide-and-deep-training.p100x4.all"


def best_plan(name: str) -> Plan:
    return frozen_plan(zoo_problem(name))


def saved(plan: Plan, folder: Path) -> Path:
    plan.save(folder / "submitted.json")
    return folder / "submitted.json"


@pytest.fixture
def board(tmp_path) -> Path:
    return tmp_path / "board"


@pytest.fixture
def forgotten(monkeypatch) -> None:
    """As if no plan of any problem had ever been known."""
    for module in (leaderboard, submitted_plans):
        monkeypatch.setattr(module, "best_entries", dict)


def test_the_shipped_plan_is_not_better_than_itself(tmp_path, board):
    found = submit_plan(saved(best_plan(RING), tmp_path), board)
    assert not found.accepted
    assert (found.entry.name, found.source) == (RING, BEST_VERSION)
    assert found.entry.seconds == pytest.approx(best_entries()[RING].seconds, rel=1e-6)
    assert found.entry.digest == best_entries()[RING].digest
    assert not board.exists()


def test_only_better_plans_are_kept(tmp_path, board, forgotten):
    problem = priced_problem(zoo_problem(RING))
    worse = Greedy().optimize(problem, Budget(1), 0)
    first = submit_plan(saved(worse, tmp_path), board)
    assert (first.accepted, first.before) == (True, None)
    better = submit_plan(saved(best_plan(RING), tmp_path), board)
    assert (better.accepted, better.source) == (True, str(board))
    assert better.before == first.entry
    assert better.entry.seconds < first.entry.seconds == pytest.approx(worse.value, rel=1e-6)
    again = submit_plan(saved(worse, tmp_path), board)
    assert (again.accepted, again.before) == (False, better.entry)
    assert sorted(path.name for path in board.iterdir()) == [
        f"{RING}.plan.json",
        "leaderboard.json",
    ]
    assert (Plan.load(board / f"{RING}.plan.json").device == best_plan(RING).device).all()
    listed = {p.name: (best, source) for p, best, source in named_problems("train", board=board)}
    assert listed[RING] == (better.entry, str(board))


@pytest.mark.slow
def test_shipped_plans_take_as_long_as_listed(monkeypatch):
    problems = [zoo_problem(name) for name in (RING, PLACED, ALL)]
    assert list(frozen_differences(problems)) == []
    changed = {n: replace(e, seconds=0.9 * e.seconds) for n, e in best_entries().items()}
    monkeypatch.setattr(submitted_plans, "best_entries", lambda: changed)
    wrong = list(frozen_differences(problems))
    assert len(wrong) == 3
    assert all("the list says" in said for said in wrong)


def test_plans_without_priorities_are_for_placement():
    assert named_problem(best_plan(PLACED), "plan").name == PLACED
    assert named_problem(best_plan(ALL), "plan").name == ALL


def on_other_hardware() -> Plan:
    return replace(best_plan(RING), hardware=load_hardware("ring6").to_json())


def misplaced() -> Plan:
    device = best_plan(RING).device.copy()
    device[-1] = 0
    return replace(best_plan(RING), device=device)


REFUSED = {
    "another graph": (
        lambda: replace(best_plan(RING), graph_hash="0" * 64),
        ZooError, "is none of the named problems'",
    ),
    "other hardware": (on_other_hardware, ZooError, "the plan is for other hardware"),
    "other rules": (
        lambda: replace(best_plan(RING), rules="default"), ZooError, "its rules is 'default'"
    ),
    "pinned nodes": (
        lambda: replace(best_plan(RING), fixed={0: 0}), ZooError, "its fixed"
    ),
    "illegal": (misplaced, PlanError, "is rejected for gcn-16-layers.ring16.strict"),
    "false value": (
        lambda: replace(best_plan(RING), bound=0.0, evaluation=replace(
            best_plan(RING).evaluation, seconds=1e-9)),
        PlanError, "value: the plan says 1e-09 s",
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", REFUSED)
def test_plans_that_are_refused(case, tmp_path, board, forgotten):
    make, kind, sentence = REFUSED[case]
    with pytest.raises(kind, match=sentence):
        submit_plan(saved(make(), tmp_path), board)
    assert not board.exists()


@pytest.mark.slow
def test_the_named_problem_must_be_that_of_the_plan(tmp_path, board):
    path = saved(best_plan(ALL), tmp_path)
    with pytest.raises(PlanError, match="the decision schedule is not asked for"):
        submit_plan(path, board, PLACED)
    with pytest.raises(ZooError, match="did you mean"):
        submit_plan(path, board, PLACED[:-1])
    with pytest.raises(PlanError, match="for another graph"):
        submit_plan(path, board, RING)


def test_boards_that_cannot_be_read(tmp_path, board, forgotten):
    board.mkdir()
    best_plan(RING).save(board / f"{ALL}.plan.json")
    with pytest.raises(ZooError, match=r"leaderboard \(it is missing\).*--rebuild makes it"):
        list(named_problems(board=board))
    with pytest.raises(PlanError, match="for another graph"):
        rebuild_board(board)
    (board / "leaderboard.json").write_text('{"format": "old", "plans": []}')
    with pytest.raises(ZooError, match="format 'old'"):
        submit_plan(saved(best_plan(RING), tmp_path), board)


def test_boards_that_are_none(tmp_path):
    (tmp_path / "empty").mkdir()
    (tmp_path / "file").touch()
    for name, said in (
        ("nosuch", "nosuch: no such folder"), ("empty", "empty: holds no plan"),
        ("file", "file: is a file; a leaderboard is a folder"),
    ):  # fmt: skip
        for used in (rebuild_board, lambda board: list(named_problems(board=board))):
            with pytest.raises(ZooError, match=said):
                used(tmp_path / name)
    (tmp_path / "empty" / "leaderboard.json").touch()
    with pytest.raises(ZooError, match=r"it is empty.*no plan lies beside it: delete it"):
        list(named_problems(board=tmp_path / "empty"))


def test_every_plan_that_is_refused_is_told(tmp_path, board, forgotten):
    submit_plan(saved(best_plan(RING), tmp_path), board)
    misplaced().save(board / f"{RING}.plan.json")
    (board / f"{PLACED}.plan.json").write_text("no plan")
    best_plan(RING).save(board / "other.plan.json")
    told = differences(board)
    for name, said in ((RING, "is rejected for"), (PLACED, "JSON"), ("other", "no problem is")):
        assert [s for s in told if s.startswith(f"{board / name}.plan.json: ") and said in s]
    assert len(told) == 3
    list_of_before = (board / "leaderboard.json").read_text()
    with pytest.raises(PlanError) as refused:
        rebuild_board(board)
    assert all(said in str(refused.value) for said in told)
    assert (board / "leaderboard.json").read_text() == list_of_before
    for path in board.glob("*.plan.json"):
        path.unlink()
    assert differences(board) == [f"{RING}: no plan stands beside the list"]
