"""``module:function`` and ``file.py:function`` targets, and what is said about wrong ones."""

from __future__ import annotations

import pytest

from go_rl.core import ReadError
from go_rl.graphs.readers.jax.target import named_function
from go_rl.graphs.readers.python_target import python_target

MODULE = """
import jax
import jax.numpy as jnp

VALUE = 3


def floats(*shape):
    return jax.ShapeDtypeStruct(shape, jnp.float32)


def dense(params, x):
    return x @ params["w"] + params["b"]


def factory(batch=4, width=20):
    params = {"w": floats(width, 30), "b": floats(30)}
    return dense, (params, floats(batch, width))


def all_inputs(batch=4):
    function, args = factory(batch)
    return function, args, ()


def direct(x):
    return x * 2


direct.example_args = (floats(7),)


def sized(x):
    return x * 2


def sized_args(batch=2):
    return (floats(batch),)


sized.example_args = sized_args


def bare(x):
    return x


def breaks():
    raise ValueError("first line\\nlast line")


def breaks_in_tracing():
    return (lambda x: x.nothing), (floats(3),)


def returns_list():
    return [1, 2]


class Space:
    @staticmethod
    def inner():
        return direct, (floats(9),)
"""


def read_jax_target(target, dims):
    with python_target(target) as named:
        return named_function(named, dims).graph()


@pytest.fixture
def folder(tmp_path, monkeypatch):
    (tmp_path / "jax_target_network.py").write_text(MODULE)
    (tmp_path / "jax_target_broken.py").write_text("import no_such_dependency\n")
    (tmp_path / "jax_target_syntax.py").write_text("def f(:\n")
    (tmp_path / "jax_target_torch.py").write_text(
        "raise ModuleNotFoundError(\"No module named 'torch'\", name='torch')\n"
    )
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize("module", ["jax_target_network", "jax_target_network.py"])
def test_factory_by_module_and_by_file(folder, module):
    graph = read_jax_target(f"{module}:factory", {"batch": 8})
    assert graph.name == "factory"
    assert graph.op_type[0] == "input"
    assert graph.flops.max() == 2 * 8 * 20 * 30
    assert graph.weight_bytes.sum() == 4 * (20 * 30 + 30)
    assert graph.meta["format"] == "jax"
    assert graph.meta["dims"] == {"batch": 8}


@pytest.mark.parametrize(
    ("function", "dims", "elements"),
    [("direct", {}, 7), ("sized", {}, 2), ("sized", {"batch": 5}, 5), ("Space.inner", {}, 9)],
)
def test_example_arguments(folder, function, dims, elements):
    graph = read_jax_target(f"jax_target_network:{function}", dims)
    assert graph.flops.tolist() == [0, elements]


@pytest.mark.parametrize(
    ("target", "dims", "message"),
    [
        ("jax_target_network", {}, "not of the form module:function"),
        (":factory", {}, "not of the form"),
        ("jax_target_netwrk:factory", {}, "no module 'jax_target_netwrk'.*'jax_target_network'"),
        ("jax_target_netwrk.py:factory", {}, "no file 'jax_target_netwrk.py'.*network.py"),
        ("jax_target_broken:f", {}, "importing .* failed: ModuleNotFoundError.*no_such_dependency"),
        ("jax_target_torch:f", {}, "No module named 'torch'; install it with: pip install 'go_rl"),
        ("jax_target_syntax:f", {}, "importing 'jax_target_syntax' failed: SyntaxError"),
        ("jax_target_network:factry", {}, "no attribute 'factry'; did you mean 'factory'"),
        ("jax_target_network:VALUE", {}, "'VALUE' is a int, not a function"),
        ("jax_target_network:bare", {}, r"takes arguments \(x\) and has no example_args"),
        ("jax_target_network:factory", {"bach": 8}, "no dim 'bach'; did you mean 'batch'"),
        ("jax_target_network:direct", {"batch": 8}, "example_args is fixed, so dim 'batch'"),
        ("jax_target_network:breaks", {}, "factory raised: ValueError: last line"),
        ("jax_target_network:breaks_in_tracing", {}, "raised while it was traced: AttributeError"),
        ("jax_target_network:returns_list", {}, "must return .* returned a list"),
    ],
)
def test_wrong_targets(folder, target, dims, message):
    with pytest.raises(ReadError, match=message):
        read_jax_target(target, dims)
