"""``go-rl train programs``, ``calibrate`` and ``predict --device this``: what is refused, and what
is printed."""

import pytest


@pytest.fixture(autouse=True)
def cache(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("train programs", "no source of programs is given"),
        ("train programs program-1", "no program data 'program-1'; did you mean 'programs-1'"),
        ("predict zoo:bert-tiny --device this", "run go-rl calibrate --device this"),
        ("predict operators.csv --device this", "a table of operators is of GPUs; give a network"),
    ],
)
def test_what_is_missing_is_named(command, words, said):
    found = command(*words.split())
    assert found.code != 0
    assert said in found.err


def test_train_programs_refuses_an_empty_folder(command, tmp_path):
    (tmp_path / "records").mkdir()
    said = command("train", "programs", "records")
    assert said.code != 0
    assert "no tensor program has a time" in said.err


@pytest.mark.parametrize(
    ("flags", "answer"),
    [
        (("--search-updates", 8), "--search-updates must be >= 9, not 8"),
        (("--most-spread", "nan"), "--most-spread must be > 0, not nan"),
        (("--slowest", 1), "slowest must be > 1, not 1.0"),
        (("--least-programs", 0), "--least-programs must be >= 1, not 0"),
        (("--search", -1), "--search must be a number of trials, 0 to 1000, not -1"),
        (("--search", 1001), "--search must be a number of trials, 0 to 1000, not 1001"),
    ],
)
def test_train_programs_names_the_flag_that_is_wrong(command, flags, answer):
    said = command("train", "programs", "programs-1", *flags)
    assert (said.code, said.err.count("\n")) == (2, 1)
    assert answer in said.err


@pytest.mark.parametrize("flag", ["--vary", "--platform", "--share", "--kernels", "--fusions"])
def test_measure_programs_refuses_options_of_kernels(command, flag):
    assert f"no option {flag}" in command("measure", "programs", "d", flag, "1").err
    assert f"{flag} " not in command("measure", "programs", "--help").out


def test_broken_files_are_called_what_they_are(command, tmp_path):
    (tmp_path / "broken.npz").write_text("garbage")
    assert "not a readable go_rl file" in command("train", "kernels", "broken.npz", "o.npz").err
    assert "broken.npz: no feature file" in command("train", "programs", "broken.npz").err
    (tmp_path / "cut.npz").write_bytes(b"PK\3\4 and no more")
    said = command("train", "programs", "cut.npz").err
    assert "cut.npz: not a readable feature file (File is not a zip file)" in said
    said = command("train", "operators", "nothere", "--out", "o.npz").err
    assert "nothere: no such folder of measured operators" in said


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        (("--by", "programs"), "nothing is known of this machine's programs; run go-rl calibrate"),
        (("--by", "programs", "--weights", "transfer-1"), "rank programs of one operator"),
        (("--by", "programs", "--weights", "programs-9"), "no weights of tensor programs"),
        (("--by", "programs", "--trip-count", "3"), "'trip_count' cannot be set"),
        (("--candidates", "out/tune-x"), "candidates are of programs"),
    ],
)
def test_predict_by_programs_refuses_before_anything_is_compiled(command, flags, message):
    said = command("predict", "zoo:bert-tiny", "--device", "this", *flags)
    assert said.code == 2
    assert message in said.err.replace("\n", " ")


def test_a_folder_without_candidates_is_one_clear_error(command, tmp_path):
    said = command(
        "predict", "zoo:bert-tiny", "--device", "this", "--by", "programs", "--weights",
        "programs-1", "--candidates", str(tmp_path),
    )  # fmt: skip
    assert said.code == 2
    assert "holds no candidates" in said.err.replace("\n", " ")
