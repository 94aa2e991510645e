"""Bad input through the command line: one clear line on standard error, and exit code 2."""

import json
import os
import shlex
from importlib.util import find_spec
from pathlib import Path

import pytest
from profile_documents import chain_document, node_document
from tuning.through_tvm.onnx_networks import saved, two_layers

from go_rl.costs.operators import GPU_WEIGHTS


def profile(**changes) -> bytes:
    return json.dumps(chain_document(**changes)).encode()


CHAIN_EDGE = {"sourceId": 0, "destId": 1, "cost": 0.1}
EVALUATE = "evaluate chain.json --hardware ring2 --methods greedy"
FINETUNE = "finetune zoo:vae-3-layers --out tuned --objective"
MAKESPAN = "optimize zoo:transformer-xl-2-layers-training"
RING = "optimize chain.json --hardware ring3 --samples 5"
PREDICT = "predict zoo:bert-tiny --device"
PROGRAMS = f"{PREDICT} this --by programs"
TRAIN, TUNE = "train programs programs-1", "tune programs mlp.onnx"
REFUSED = [
    ("optimize zoo:unet --out ''", "the argument behind --out is empty"),
    ("optimize zoo:unet --out=", "the argument behind --out is empty"),
    ("measure kernels ''", "the argument behind measure kernels is empty"),
    ("tune kernels zoo:unet --ranks ''", "the argument behind --ranks is empty"),
    # A network of the zoo has no prefix where only those are taken.
    ("measure kernels out --models zoo:ncf", "is called 'zoo:ncf'; did you mean 'ncf'?"),
    ("measure kernels file", "DIR names a folder"),
    ("measure kernels new --models bert-tinny", "did you mean 'bert-tiny'?"),
    *((f"{words} --cost lerned", "lerned'; did you mean 'learned'?") for words in (
        "finetune zoo:bert-base", "evaluate zoo:bert-base",
        "train policy run", "train policy run --network dispatch")),
    # The cost reaches every command: the chain is a profile, which this model cannot price.
    *((f"{words} --cost analytical", "no FLOP, which the analytical model needs; use --cost prof")
      for words in (
        "optimize chain.json --objective makespan",
        "optimize chain.json", "finetune chain.json --objective ring",
        "finetune chain.json --objective makespan")),
    *((words, "file is not a folder") for words in (
        "measure kernels file/m --models bert-tiny", "tune kernels zoo:bert-tiny --out file/t",
        "train policy file/r", "train policy file/r --network dispatch",
        "evaluate chain.json --out file/e", "train kernels kernels-cpu-1 file/w.npz",
        "optimize chain.json --out file/p", "graph chain.json --save file/g.npz")),
    (f"{EVALUATE} --methods gredy", "did you mean 'greedy'?"),
    (f"{EVALUATE} --hardware ringg2", "unknown hardware 'ringg2'"),
    (f"{EVALUATE} --rules strickt", "did you mean 'strict'?"),
    ("evaluate mlp.onnx --methods greedy", "The option is one of go-rl graph: give the file"),
    (f"{EVALUATE} --seeds 0", "evaluate: --seeds must be >= 1"),
    (f"{EVALUATE} --samples 0", "budget: --samples must be >= 1"),
    (f"{EVALUATE} --seconds inf", "budget: --seconds must be finite and > 0, not inf"),
    (f"{RING} --seconds 1e400", "budget: --seconds must be finite and > 0, not inf"),
    (f"{EVALUATE} --thresholds 0", "thresholds must be > 0"),
    (f"{EVALUATE} --thresholds 2 x", "--thresholds: cannot be read from '2', 'x'"),
    (f"{EVALUATE} --controls", "none of greedy has one"),
    (f"{EVALUATE} --control blind", "none of greedy has one"),
    (f"{EVALUATE} --weights orders-1.0", "evaluate: --weights are for methods with a policy"),
    (f"{EVALUATE} scratch --weights orders-1.0", "none of greedy, scratch takes them; leave them"),
    (f"{EVALUATE} --decide fusion", "evaluate: --decide has no meaning"),
    (f"{EVALUATE} --bound-seconds -1", "evaluate: --bound-seconds must be finite and >= 0"),
    (f"{EVALUATE} --controls --control blind", "evaluate: --controls runs all control arms"),
    (f"{EVALUATE} --once random", "evaluate: --once names 'random', which is no method"),
    (f"{EVALUATE} --out file", "file: cannot be written"),
    ("evaluate zoo:unett --methods greedy", "did you mean 'unet'?"),
    (f"{FINETUNE} makespan --weights orders-1.0", "for objective ring, not makespan"),
    (f"{FINETUNE} ring --weights dispatch-2.5", "for objective makespan, not ring"),
    (f"{FINETUNE} ring --batch 1", "fine-tuning: --batch must be >= 2"),
    (f"{FINETUNE} makespan --batch 4", "batch has no meaning for policy dispatch"),
    (f"{FINETUNE} makespan --hardware ring4", "needs fully connected devices"),
    (f"{FINETUNE} makespan --entropy 0.1", "entropy has no meaning for policy dispatch"),
    (f"{FINETUNE} ring --control blnd", "blind"),
    (f"{MAKESPAN} --colocate gradient", "did you mean 'gradients'"),
    (f"{MAKESPAN} --decide ,", "name some of placement"),
    (f"{MAKESPAN} --method linear-dp", "cannot work on objective makespan"),
    (f"{MAKESPAN} --weights graph-9.9 --method policy", "no policy weights 'graph-9.9'"),
    (f"{RING} --method annealing --control blind", "'annealing' has none; use auto, all"),
    (f"{RING} --method annealing --weights orders-1.0", "--weights are for methods with a policy"),
    (f"{RING} --objective max-load --control blind", "control has no meaning for objective max-l"),
    (f"{RING} --control blnd", "blind"),
    ("optimise m.onnx", "no command 'optimise'; did you mean 'optimize'?"),
    ("train polcy r", "did you mean 'policy'?"),
    ("hardware lst", "go-rl hardware takes list, show, new or this, not 'lst'; did you mean 'li"),
    ("zoo", "go-rl zoo takes list, show, generate, best or best submit, not ''"),
    ("optimize m.onnx --hardwar ring4", "no option --hardwar; did you mean '--hardware'?"),
    ("optimize m.onnx --objective rng", "no choice 'rng'; did you mean 'ring'?"),
    ("optimize m.onnx --seconds x", "--seconds: must be a number, not 'x'"),
    ("optimize m.onnx n.onnx", "one argument too many: 'n.onnx'"),
    ("optimize m.onnx --seed", "--seed needs a value"),
    ("check plan.json --json", "missing: MODEL"),
    ("check", "missing: PLAN, MODEL (go-rl check --help)"),
    ("train policy --validation-hardware p100x2", "missing: DIR (go-rl train policy --help)"),
    ("train policy r --network dispach", "did you mean 'dispatch'?"),
    ("train policy r --network dispatch --rules strict", "no option --rules"),
    ("train policy r --hardware p100x4", "network ring needs hardware with ring links"),
    ("train policy r --network dispatch --hardware ring4", "hardware 'ring4' has ring links"),
    ("run stages --tolerance 1", "--tolerance is of what --check compares"),
    ("run stages --model m.onnx", "--model is the whole model that --check runs; add --check"),
    ("hardware new mine.json", "questions are asked on a terminal only"),
    ("hardware new mine.json --devices a100x3 --links torus --shape 2 2", "there are 3; make the"),
    ("hardware new mine.json --kind npu", "--kind npu needs --tflops, --memory-gb, --memory-gb-p"),
    ("hardware new mine --devices a100", "a hardware file's name must end in .json"),
    ("hardware new mine.json --device a100", "--device"),
    ("hardware new /proc/x.json --devices a100", "cannot be written"),
    ("hardware this --out mine.txt", "a hardware file's name must end in .json"),
    ("predict zoo:bert-larg --device t4", "did you mean 'bert-large'"),
    (f"{PREDICT} t44", "no device 't44'"),
    (f"{PREDICT} t4 --dim batch=2", "so 'batch' cannot be set"),
    ("predict zoo:bert-large --device t4 --dim batch=-2", "size >= 1"),
    ("predict zoo:bert-large --device t4 --dim length=2", "no dimension 'length'"),
    ("predict operators.csv --device t4 --dim batch=2", "leave out dims (--dim on the command"),
    ("predict operators.csv --device t4 --fused-attention", "fused_attention is of networks"),
    ("predict operators.csv --device t4 --fusion none", "fusion is of networks"),
    ("predict operators.csv --device tesla-t44", "did you mean 'tesla-t4'"),
    ("predict operators.csv --device t4 --weights gpu-1.1", f"did you mean '{GPU_WEIGHTS}'"),
    ("predict operators.csv --device t4 --weights none.npz", "none.npz: no such file"),
    ("predict operators.csv --device this", "a table of operators is of GPUs; give a network"),
    ("predict none.csv --device t4", "none.csv: cannot be read"),
    ("predict none.onnx --device t4", "no such file"),
    (f"{PREDICT} t4 --element-type bf6", "element type 'bf6'"),
    (f"{PREDICT} this --element-type bfloat16", "--element-type is of GPUs"),
    (f"{PREDICT} this --fused-attention", "--fused-attention is of GPUs"),
    (f"{PREDICT} this", "run go-rl calibrate --device this"),
    ("calibrate --device this --tasks 5", "--tasks is an option of programs; give --programs"),
    ("calibrate --device this --programs --kernels 5", "--kernels is an option of kernels"),
    (PROGRAMS, "nothing is known of this machine's programs; run go-rl calibrate"),
    (PROGRAMS, "or programs-5, learned on authenticamd-family-25-model-1, "),
    (f"{PROGRAMS} --weights transfer-1", "rank programs of one operator"),
    (f"{PROGRAMS} --weights programs-9", "no weights of tensor programs"),
    (f"{PROGRAMS} --trip-count 3", "'trip_count' cannot be set"),
    (f"{PROGRAMS} --fusion none", "--fusion is of kernels"),
    (f"{PROGRAMS} --weights programs-5-cdmpp --candidates empty", "holds no candidates"),
    (f"{PREDICT} this --candidates out/tune-x", "or on the command line --by programs"),
    ("train programs", "no source of programs is given"),
    ("train programs program-1", "no program data 'program-1'; did you mean 'programs-1'"),
    ("train programs foldr", "programs-5; or a folder of go-rl measure programs"),
    ("train programs empty", "no tensor program has a time"),
    (f"{TRAIN} --search-updates 8", "--search-updates must be >= 9, not 8"),
    (f"{TRAIN} --most-spread nan", "--most-spread must be > 0, not nan"),
    (f"{TRAIN} --slowest 1", "slowest must be > 1, not 1.0"),
    (f"{TRAIN} --least-programs 0", "--least-programs must be >= 1, not 0"),
    (f"{TRAIN} --model code-trees --updates 5", "--updates is an option of the models cdmpp, "),
    (f"{TRAIN} --fine-tune programs-5-cdmpp --members 1", "--members is not read in fine-tuning"),
    (f"{TRAIN} --search -1", "--search must be a number of trials, 0 to 1000, not -1"),
    (f"{TRAIN} --search 1001", "--search must be a number of trials, 0 to 1000, not 1001"),
    ("train operators empty --out o.npz", "empty: has no measured operators"),
    ("train operators --out o.npz", "no folder of measured operators"),
    ("train operators nothere --out o.npz", "nothere: no such folder of measured operators"),
    # Broken files are called what they are.
    ("train kernels broken.npz o.npz", "not a readable go_rl file"),
    ("train programs broken.npz", "broken.npz: no feature file"),
    ("train programs cut.npz", "cut.npz: not a readable feature file (File is not a zip file)"),
    *((f"measure programs d {flag} 1", f"no option {flag}") for flag in (
        "--vary", "--platform", "--share", "--kernels", "--fusions")),
    ("tune kernels zoo:resnet5 --guide random", "did you mean 'resnet"),
    ("tune kernels chain.json --guide random", "chain.json: is a file: only JAX functions"),
    ("tune kernels nothing.onnx --guide random", "is no model that can be tuned"),
    ("tune kernels nowhere:f --guide random", "there is no module 'nowhere'"),
    ("tune kernels zoo:resnet50 --minutes 0", "minutes must be finite and > 0"),
    ("tune kernels zoo:resnet50 --target gpu-9", "--target gpu-9: no kernel cost weights ship"),
    ("tune kernels zoo:resnet50 --cost cheap", "cost must be learned"),
    (f"{TUNE} --minutes 0", "minutes must be finite and > 0"),
    (f"{TUNE} --trials 0", "trials must be >= 1"),
    (f"{TUNE} --dim batch", "--dim batch: must be NAME=SIZE"),
    (f"{TUNE} --memory 1", "memory must be >= 1e+09"),
    (f"{TUNE} --cores 0", "cores must be >= 1"),
    (f"{TUNE} --cores 2 --core 0", "several cores are the last ones of this process"),
    (f"{TUNE} --input x=ax8", "--input x=ax8: must be NAME=SIZExSIZE"),
    (f"{TUNE} --weight-args one", "--weight-args one: must be positions"),
    (f"{TUNE} --scheduler dynatun", "unknown scheduler 'dynatun'; did you mean 'dynatune'"),
    (f"{TUNE} --belief log-powr", "unknown belief 'log-powr'; did you mean 'log-power'"),
    (f"{TUNE} --tuner anealing", "unknown inner tuner 'anealing'; did you mean 'annealing'"),
    (f"{TUNE} --scheduler oracle", "cannot schedule what is measured live"),
    (f"{TUNE} --target x86-64v3", "unknown target 'x86-64v3'; did you mean 'x86-64-v"),
    ("zoo show resnet-18", "did you mean 'resnet18'?"),
    ("zoo show generated-2-17", "go-rl graph zoo:generated-2-17 shows it"),
    ("zoo show zoo:generated-1-17", "generated ones are generated-2-0 and so on"),
    ("zoo list --split tset", "train"),
    ("zoo best sumbit p", "one argument too many: 'sumbit'"),
    ("zoo best --rebuild", "out/best: no such folder"),
    ("zoo best submit absent.json", "absent.json: cannot be read"),
    ("view empty", "empty: holds no plan.json; go-rl optimize MODEL --out empty writes one"),
    ("graph chain.json --save pipe.json", "pipe.json: cannot be written (it is a pipe, not a re"),
    *((f"{words} file", "cannot be written (its name must end in .npz)") for words in (
        "graph chain.json --save", "train operators empty --out")),
    *((f"train {words} file", "must end in .npz, not 'file'") for words in (
        "kernels kernels-cpu-1", "flags kernels-cpu-1", "kernels kernels-cpu-1 w.npz --data")),
    ("graph bert-base", "bert-base: no such file; did you mean 'zoo:bert-base'?"),
    ("graph file.py", "file.py: Python code; name a function or module in it, such as file.py:mo"),
    ("optimize chain.json --hardware empty", "empty: is a folder; wanted is hardware, such as a"),
    ("optimize chain.json --hardware no.json", "no.json: not JSON (it is empty); wanted is hardw"),
    ("check no.json chain.json", "no.json: not JSON (it is empty); wanted is a plan, such as pl"),
    ("check pipe.json chain.json", "it is a pipe, not a regular file"),
    ("optimize chain.json --hardware pipe.json", "it is a pipe, not a regular file"),
]  # fmt: skip
"""What is typed, and what is said."""
OF_TVM = [
    (TUNE, "give --dim 'batch=<size>'"),
    (f"{TUNE} --dim batch=2 --weight-args 0", "does not apply to ONNX"),
    ("tune programs zoo:resnet17", "did you mean 'resnet18'"),
    ("tune programs absent.onnx", "absent.onnx: no such file"),
    ("tune programs broken.onnx", "broken.onnx: not a model that go_rl reads"),
]
"""The same where TVM is installed."""
NEEDS_TVM = pytest.mark.skipif(find_spec("tvm") is None, reason="pip install 'go_rl[tvm]'")


@pytest.fixture
def files(chain, tmp_path, monkeypatch) -> None:
    """What the lines name beside the profile ``chain.json``."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    (tmp_path / "operators.csv").write_text("op,B,M,N,K\nlinear,1,512,1024,4096\n")
    (tmp_path / "file").write_text("mine")
    (tmp_path / "file.py").write_text("def model(x):\n    return x\n")
    (tmp_path / "no.json").write_text("")
    (tmp_path / "broken.npz").write_text("garbage")
    (tmp_path / "cut.npz").write_bytes(b"PK\3\4 and no more")
    (tmp_path / "broken.onnx").write_bytes(b"\xff\xff nothing")
    (tmp_path / "empty").mkdir()
    os.mkfifo(tmp_path / "pipe.json")
    saved(two_layers(), tmp_path / "mlp.onnx")


@pytest.mark.parametrize(
    ("line", "said"),
    [*REFUSED, *(pytest.param(*row, marks=NEEDS_TVM) for row in OF_TVM)],
    ids=[line for line, _ in (*REFUSED, *OF_TVM)],
)
def test_it_is_said_in_one_line_and_nothing_is_written(refused, files, untimed, line, said):
    before = sorted(Path().rglob("*"))
    refused(*shlex.split(line), said=said)
    assert sorted(Path().rglob("*")) == before
    assert (Path("file").read_text(), Path("pipe.json").is_fifo()) == ("mine", True)


def test_the_cost_reaches_an_evaluation(refused, chain, untimed):
    words = ("--hardware", "ring2", "--cost", "analytical")
    refused("evaluate", chain, *words, said="no FLOP, which the analytical model needs")


def test_names_of_files_reach_the_terminal_escaped_and_short(command, tmp_path):
    """An operator of 300 letters made `graph` print its table for ever; others move the cursor."""
    path = tmp_path / "\x1b[2J\x07.json"
    nodes = [node_document(0, name="X" * 300), node_document(1)]
    path.write_bytes(profile(nodes=nodes, edges=[CHAIN_EDGE]))
    found = command("graph", path)
    assert found.code == 0, found.err
    assert "\x1b" not in found.out
    assert r"\x1b[2J\x07" in found.out
    assert "XXX…XXX" in found.out
    lines = found.out.splitlines()
    assert max(len(line) for line in lines if not line.startswith("next: ")) <= 160
    path.write_bytes(b'{"nodes": [], "' + b"x" * 2_000_000 + b'": ["\x1b[2J"]}')
    for words in (
        ("optimize", path, "--hardware", "x" * 2_000_000),
        ("records", "list", "y" * 3000 + "\x1b"),
    ):
        found = command(*words)
        assert (found.code, found.out, found.err.count("\n")) == (2, "", 1)
        assert "\x1b" not in found.err
        assert len(found.err) < 2100


OURS = {
    "train policy new --config out/plan.json": ("out/plan.json: is a plan", "the configuration of"),
    "train policy new --config mine.json": ("mine.json: is hardware", "the configuration of"),
    "optimize chain.json --hardware out/methods.json": ("is the methods of a search", "hardware"),
    "predict zoo:ncf --device mine.json": ("mine.json: is hardware", "the data sheet"),
    "predict zoo:ncf --device out/config.json": ("is the options of a search", "the data sheet"),
    "check out/config.json chain.json": ("out/config.json: is the options of", "a plan"),
    "check mine.json chain.json": ("mine.json: is hardware", "a plan"),
    "view mine.json chain.json": ("mine.json: is hardware", "a plan"),
    "check out chain.json": ("out: is a folder", "a plan, such as plan.json"),
    "check --split out chain.json": ("out: is a folder", "without stages.json"),
    "check --split mine.json chain.json": ("mine.json: is hardware", "no split"),
    "graph out/plan.json": ("out/plan.json: is a plan", "a model"),
    "graph printed.json": ("printed.json: is a graph that go-rl graph --json printed", "a model"),
    "optimize chain.json --hardware printed.json": ("is a graph that go-rl graph", "hardware"),
}  # fmt: skip
"""Files of our own where others are asked, and what is said: what it is, and what is wanted."""


def test_another_of_our_own_files_is_called_by_its_name(command, chain, untimed):
    words = ("--method", "greedy", "--samples", 5, "--out", "out")
    assert command("optimize", chain, *words).code == 0
    assert command("hardware", "new", "mine.json", "--devices", "t4").code == 0
    Path("printed.json").write_text(command("graph", chain, "--json").out)
    before = sorted(Path().rglob("*"))
    for line, (found, wanted) in OURS.items():
        run = command(*line.split())
        assert (run.code, run.out, run.err.count("\n")) == (2, "", 1), (line, run.err)
        assert found in run.err, (line, run.err)
        assert wanted in run.err.partition(found)[2], (line, run.err)
    assert sorted(Path().rglob("*")) == before
