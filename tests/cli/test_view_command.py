"""``go-rl view``: a folder or a plan in, a page out."""

import json
from pathlib import Path

import pytest

QUICK = ("--hardware", "ring3", "--method", "greedy", "--samples", 20)


@pytest.fixture
def folder(command, chain) -> Path:
    """A folder with the plan of a chain of six operators."""
    found = command("optimize", chain, *QUICK, "--out", "out")
    assert found.code == 0, found.err
    return Path("out")


def data_of(page: Path) -> dict:
    text = page.read_text().partition('id="data">')[2].partition("</script>")[0]
    return json.loads(text)


def test_a_folder_needs_no_model(command, folder):
    found = command("view", folder)
    assert (found.code, found.err) == (0, "")
    assert found.out == "written: out/page.html\n"
    document = data_of(folder / "page.html")
    assert document["plans"][0]["device"] == [0, 0, 1, 1, 2, 2]
    assert document["plans"][0]["methods"]["names"][0] == "greedy"


def test_a_plan_and_a_model(command, folder, chain):
    Path("alone").mkdir()
    (folder / "plan.json").rename("alone/plan.json")
    found = command("view", "alone/plan.json", chain, "--out", "x.html", "--json")
    assert found.code == 0, found.err
    assert found.document == {"written": ["x.html"], "rejected": {}}
    assert data_of(Path("x.html"))["plans"][0]["methods"] is None
    found = command("view", "alone/plan.json")
    assert found.code == 2
    assert found.err == (
        "go-rl: alone: no config.json says which model the plan is for; name it: go-rl view OUT "
        "MODEL\n"
    )


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("view out --out m.onnx", "--out: m.onnx: cannot be written (its name must end in .html)"),
        ("view out --model-explorer m.onnx", "m.onnx: cannot be written (its name must end in .js"),
        ("view out --model-explorer out/plan.json", "out/plan.json: is what is read; name another"),
        ("export out/plan.json chain.json --to json --out out/plan.json", "is what is read; name"),
    ],
)
def test_a_plan_or_another_file_is_not_written_over(refused, folder, words, said):
    Path("m.onnx").write_text("a model")
    before = (folder / "plan.json").read_bytes()
    refused(*words.split(), said=said)
    assert (Path("m.onnx").read_text(), (folder / "plan.json").read_bytes()) == ("a model", before)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("{}", "out/config.json: names no model; name it: go-rl view OUT MODEL"),
        ("[", "out/config.json: not JSON (Expecting value"),
        (
            '{"source": {"modle": "x"}}',
            "out/config.json: source: unknown field 'modle'; did you mean",
        ),
    ],
)
def test_a_configuration_that_names_no_model(refused, folder, content, message):
    (folder / "config.json").write_text(content)
    refused("view", folder, said=f"go-rl: {message}")


def test_a_plan_for_another_model(refused, folder):
    said = f"go-rl: {folder}/plan.json: the plan is for another graph: its node 0 is 0"
    refused("view", folder, "zoo:ncf", said=said)
    assert not (folder / "page.html").exists()


def test_of_two_plans_the_one_for_another_model_is_named(command, refused, folder):
    assert command("optimize", "zoo:ncf", *QUICK, "--out", "other").code == 0
    said = "go-rl: other/plan.json: the plan is for another graph: "
    refused("view", folder, "--compare", "other", said=said)


def test_options_of_a_model_need_the_model(refused, folder, chain):
    refused(
        "view", folder, "--dim", "batch=8", "--trip-count", 7,
        said=f"go-rl: --dim, --trip-count: for a MODEL that is named only; out/config.json holds "
        f"{chain} with options of its own. Use: go-rl view out {chain} --dim batch=8 --trip-count "
        "7",
    )  # fmt: skip


@pytest.mark.parametrize("out", [("--out", "deep/mine"), ("--out", "."), ()])
def test_a_folder_is_shown_from_anywhere(command, monkeypatch, chain, out, tmp_path):
    made = command("optimize", chain.name, *QUICK, *out)
    assert made.code == 0, made.err
    folder = tmp_path / (out[1] if out else "out/chain")
    (tmp_path / "elsewhere").mkdir()
    for there in (".", "elsewhere"):
        monkeypatch.chdir(tmp_path / there)
        found = command("view", folder, "--out", tmp_path / "x.html")
        assert found.code == 0, found.err
    assert data_of(tmp_path / "x.html")["plans"][0]["device"] == [0, 0, 1, 1, 2, 2]


def test_a_model_that_is_gone_is_said_to_be_named_by_the_configuration(refused, folder, chain):
    chain.unlink()
    said = (
        f"go-rl: out/config.json: source.model '{chain}' cannot be read; if it lies elsewhere, "
        f"name it: go-rl view out MODEL ({chain}: no such file"
    )
    refused("view", folder, said=said)


def test_a_rejected_plan_is_shown_and_said_to_be_rejected(command, folder):
    document = json.loads((folder / "plan.json").read_text())
    document["device"] = [1, 0, 0, 1, 2, 2]
    (folder / "plan.json").write_text(json.dumps(document))
    found = command("view", folder)
    assert found.code == 0, found.err
    first, second = found.out.splitlines()
    assert first == "written: out/page.html"
    assert second.startswith("rejected: out/plan.json: The plan breaks a static rule. acyclic: ")
    listed = command("view", folder, "--json").document["rejected"]
    assert listed == {"out/plan.json": second.removeprefix("rejected: out/plan.json: ")}
