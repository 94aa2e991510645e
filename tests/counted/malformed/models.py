"""Model files of the other formats with one thing wrong."""

from .case import Malformed

READ = ("graph", "model.bin")
RELU = b'\x08\x08:P\n\x17\n\x01x\x12\x01y\x1a\x04relu"\x04Relu:\x00\x12\x01gZ\x13\n\x01x\x12\x0e\n'
PIPEDREAM = """\
node1 -- Input0 -- forward_compute_time=0.0, backward_compute_time=0.0, activation_size=0.0, parameter_size=0.0
node2 -- Conv2d(3) -- forward_compute_time=1.5, backward_compute_time=2.5, activation_size=32.0, parameter_size=8.0
\tnode1 -- node2
"""  # noqa: E501
HLO = """\
HloModule tiny

%add (x: f32[], y: f32[]) -> f32[] {
  %x = f32[] parameter(0)
  %y = f32[] parameter(1)
  ROOT %sum = f32[] add(%x, %y)
}

ENTRY %main (a: f32[4,8], b: f32[8,2]) -> f32[4] {
  %a = f32[4,8] parameter(0)
  %b = f32[8,2] parameter(1)
  %dot = f32[4,2] dot(%a, %b), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  %zero = f32[] constant(0)
  ROOT %red = f32[4] reduce(%dot, %zero), dimensions={1}, to_apply=%add
}
"""
STABLEHLO = """\
module @m {
  func.func public @main(%arg0: tensor<4xf32>) -> tensor<4xf32> {
    %0 = stablehlo.add %arg0, %arg0 : tensor<4xf32>
    return %0 : tensor<4xf32>
  }
}
"""


def _case(name: str, content: bytes | str, *words: str) -> Malformed:
    data = content.encode() if isinstance(content, str) else content
    return Malformed(name, READ, {"model.bin": data}, ("model.bin", *words))


def _replaced(what: str, text: str, old: str, new: str, *words: str) -> Malformed:
    assert old in text, old
    return _case(f"{what}: {old!r} is {new!r}", text.replace(old, new, 1), *words)


def _profile(old: str, new: str, *words: str) -> Malformed:
    return _replaced("pipedream", PIPEDREAM, old, new, *words)


def _hlo(old: str, new: str, *words: str) -> Malformed:
    return _replaced("hlo", HLO, old, new, *words)


def _mlir(old: str, new: str, *words: str) -> Malformed:
    return _replaced("stablehlo", STABLEHLO, old, new, *words)


MODELS = (
    _case("file: empty", b"", "empty"),
    _case("file: blanks", b" \n\t \n", "empty"),
    _case("file: every byte", bytes(range(256)) * 40),
    _case("file: one byte, often", b"\xff" * 1000),
    _case("file: zeros", bytes(5000)),
    _case("file: words", b"these are words", "not a model"),
    _case("file: a program", b"import numpy as np\n", "not a model"),
    _case("file: an executable", b"\x7fELF" + bytes(100)),
    _case("file: an archive of nothing", b"PK\x03\x04rubbish", "damaged"),
    _case("file: an empty archive", b"PK\x05\x06" + bytes(18)),
    _case("file: a picture", b"\x89PNG\r\n\x1a\n" + bytes(64)),
    _case("file: a number", b"3"),
    _case("file: null", b"null"),
    _case("file: a string", b'"model"'),
    _case("onnx: a head alone", b"\x08\x0a\x12\x04jaxx\x42\x02\x10\x15\x3a\x28" + bytes(10),
          "truncated"),
    _case("profile: no text", b'{"nodes": "\xff\xfe"}', "not a model|not valid JSON"),
    *(_case(f"onnx: the first {n} bytes", RELU[:n]) for n in (1, 2, 5, 17, 40, len(RELU))),
    _profile("backward_compute_time=2.5", "", "backward_compute_time"),
    _profile("1.5", "nan", "node2", "forward_compute_time"),
    _profile("1.5", "-1.5", "node2"),
    _profile("1.5", "fast", "node2"),
    _profile("=32.0", "=[]", "node2", "activation_size"),
    _profile("=32.0", "=[1; x]", "node2", "activation_size"),
    _profile("=8.0", "=inf", "node2", "parameter_size"),
    _profile("node2 --", "node1 --", "twice"),
    _profile("\tnode1 -- node2", "\tnode1 -- node8", "node8"),
    _profile("\tnode1 -- node2", "\tnode2 -- node2", "itself"),
    _profile("\tnode1 -- node2", "\tnode1 -- node2\n\tnode2 -- node1", "cycle"),
    _profile("\tnode1 -- node2", "hello", "hello"),
    _hlo(" add(", " conwert(", "conwert"),
    _hlo("ENTRY ", "", "ENTRY"),
    _hlo("to_apply=%add", "to_apply=%ad", "ad"),
    _hlo("dot(%a, %b)", "dot(%a, %v)", "v"),
    _hlo("f32[8,2] parameter", "f32[8,two] parameter", "numbers"),
    _hlo("f32[8,2] parameter", "quux[8,2] parameter", "quux"),
    _hlo("%b = f32[8,2]", "%a = f32[8,2]", "alike"),
    _case("hlo: half of it", HLO[: len(HLO) // 2]),
    _case("hlo: a module of nothing", "HloModule empty\n", "ENTRY"),
    _case("hlo: no instructions", "HloModule empty\n\nENTRY main {\n}\n", "no instructions"),
    _case("hlo: nested too deep", f"HloModule d\n\nENTRY m {{\n  ROOT p = {'(' * 99}", "nested"),
    _mlir("stablehlo.add", "stablehlo.adds"),
    _mlir("%arg0, %arg0", "%arg0, %arg1"),
    _mlir("tensor<4xf32>)", "tensor<4xf33>)"),
    _mlir("return %0", "return %1"),
    _mlir("@main", "@other"),
    _case("stablehlo: half of it", STABLEHLO[:90]),
    _case("stablehlo: no function", "module @m {\n}\n"),
)  # fmt: skip
