"""Machine code of tensor programs: loops, their iterations, work, bounds of the time."""

import numpy as np
import pytest

from go_rl.costs.programs.machine_code.assembly import MachineInstruction, machine_functions
from go_rl.costs.programs.machine_code.instruction_mix import work_of
from go_rl.costs.programs.machine_code.iterations import iterations
from go_rl.costs.programs.machine_code.machine_numbers import MACHINE_NAMES, machine_numbers

ADD = "vaddps (%rsi,%rax,4), %ymm0, %ymm1\nvmovups %ymm1, (%rdi,%rax,4)"
"""Eight additions."""


def code(*lines: str, name: str = "main_compute_") -> str:
    """Return a function of assembly."""
    body = "\n".join(lines)
    return f".type {name},@function\n{name}:\n{body}\nretq\n.Lfunc_end0:\n"


LOOPS = {
    "up by eight": (("xorl %eax, %eax", ".LBB0_1:", ADD, "addq $8, %rax", "cmpq $512, %rax",
                     "jne .LBB0_1"), 64),
    "a part of the register": (("xorl %eax, %eax", ".LBB0_1:", ADD, "incl %eax", "cmpq $7, %rax",
                                "jne .LBB0_1"), 7),
    "up to nothing": (("movq $-96, %rcx", ".LBB0_1:", ADD, "addq $32, %rcx", "jne .LBB0_1"), 3),
    "down": (("movl $5, %ecx", ".LBB0_1:", ADD, "decl %ecx", "jne .LBB0_1"), 5),
    "at most": (("xorl %eax, %eax", ".LBB0_1:", ADD, "addq $1, %rax", "cmpq $7, %rax",
                 "jbe .LBB0_1"), 8),
    "on the stack": (("movq $0, 8(%rsp)", ".LBB0_1:", ADD, "movq 8(%rsp), %rax", "incq %rax",
                      "movq %rax, 8(%rsp)", "cmpq $9, %rax", "jne .LBB0_1"), 9),
    "the next value elsewhere": (("xorl %eax, %eax", ".LBB0_1:", ADD, "leaq 4(%rax), %rcx",
                                  "movq %rcx, %rax", "cmpq $40, %rcx", "jne .LBB0_1"), 10),
    "a bit": (("movb $1, %cl", ".LBB0_1:", ADD, "testb $1, %cl", "movl $0, %ecx", "jne .LBB0_1"),
              2),
    "leaves between": (("xorl %eax, %eax", ".LBB0_1:", ADD, "incq %rax", "cmpq $6, %rax",
                        "je .LBB0_2", "jmp .LBB0_1", ".LBB0_2:"), 6),
    "told at run time": (("xorl %eax, %eax", ".LBB0_1:", ADD, "incl %eax", "cmpl %edx, %eax",
                          "jne .LBB0_1"), None),
}  # fmt: skip


@pytest.mark.parametrize(("lines", "expected"), LOOPS.values(), ids=LOOPS)
def test_iterations_follow_from_the_counter(lines, expected):
    (function,) = machine_functions(code(*lines))
    (loop,) = function.loops
    assert iterations(function, loop) == expected


NESTED = (
    "xorl %ecx, %ecx", ".LBB0_1:", "xorl %eax, %eax", ".LBB0_2:", ADD, "addq $8, %rax",
    "cmpq $32, %rax", "jne .LBB0_2", "incq %rcx", "cmpq $10, %rcx", "jne .LBB0_1",
)  # fmt: skip


def told(assembly: str, *parallel: int) -> dict[str, float]:
    return dict(zip(MACHINE_NAMES, machine_numbers(assembly, parallel), strict=True))


def test_loops_inside_of_one_another_multiply():
    found = told(code(*NESTED))
    assert 2 ** found["machine_operations"] - 1 == pytest.approx(10 * 4 * 8)
    assert 2 ** found["machine_stores"] - 1 == pytest.approx(40)
    assert found["machine_unknown_loops"] == 0
    assert found["hot0_iterations"] == pytest.approx(np.log2(5))
    assert found["hot1_share"] == 0


def test_a_parallel_loop_has_the_extent_of_its_nest():
    lines = LOOPS["told at run time"][0]
    found = told(code(*lines, name=".L__tvm_parallel_lambda"), 12)
    assert 2 ** found["machine_operations"] - 1 == pytest.approx(12 * 8)
    assert found["machine_unknown_loops"] == 0
    assert told(code(*lines))["machine_unknown_loops"] == 1


def test_what_is_stored_and_read_again_waits():
    again = ("xorl %ecx, %ecx", ".LBB0_1:", "vaddps (%rdi), %ymm0, %ymm1", "vmovups %ymm1, (%rdi)",
             "incq %rcx", "cmpq $100, %rcx", "jne .LBB0_1")  # fmt: skip
    found = told(code(*again))
    assert found["hot0_forwarded"] == 1
    assert found["machine_forwarded_cycles"] == found["machine_cycles"] > 9


def test_a_sum_in_one_register_is_a_chain():
    chain = (
        "xorl %ecx, %ecx", ".LBB0_1:", "vzeroupper", *["vfmadd231ps (%rsi), %ymm0, %ymm1"] * 3,
        "incq %rcx", "cmpq $50, %rcx", "jne .LBB0_1",
    )  # fmt: skip
    assert 2 ** told(code(*chain))["machine_chain_cycles"] - 1 == pytest.approx(4 * 150)


def test_functions_of_the_wrapper_are_left_out():
    whole = code(*NESTED, name="__tvm_ffi_main") + code("nop")
    assert [each.name for each in machine_functions(whole)] == ["main_compute_"]
    assert told("")["machine_cycles"] == 0


WORK = {
    "vfmadd231ps (%rsi), %zmm0, %zmm1": {"fused": 2.0, "operations": 32.0, "loads": 2.0},
    "vmulss %xmm0, %xmm1, %xmm2": {"scalar_arithmetic": 1.0, "operations": 1.0},
    "vmovaps %ymm1, 32(%rsp)": {"spills": 1.0, "writes": 1.0},
    "vshufps $0, %xmm1, %xmm1, %xmm1": {"reorders": 1.0},
    "vbroadcastss (%rsi), %ymm1": {"scalar_loads": 1.0, "reads": 1.0},
    "vgatherdps %ymm2, (%rdi,%ymm1,4), %ymm0": {"gathered": 8.0},
    "vdivps %ymm0, %ymm1, %ymm2": {"divisions": 1.0},
    "mulps (%rsi), %xmm1": {"arithmetic": 0.5, "operations": 4.0, "loads": 0.5},
    "divss %xmm0, %xmm1": {"divisions": 1.0},
    "movups %xmm1, (%rdi)": {"stores": 0.5, "writes": 1.0, "whole_numbers": None},
    "shufps $0, %xmm1, %xmm1": {"reorders": 1.0, "whole_numbers": None},
    "vmovaps %ymm1, %ymm2": {"reorders": None, "reads": None},
    "vpextrq $1, %xmm0, %rax": {"reorders": 1.0},
    "leaq 8(%rax), %rcx": {"whole_numbers": 1.0},
    "cmpl $4, 16(%rax)": {"whole_numbers": 1.0, "reads": 1.0},
    "callq expf@PLT": {"calls": 1.0},
    "vzeroupper": {"reads": None},
    "jne .LBB0_1": {"jumps": 1.0},
}


@pytest.mark.parametrize(("line", "expected"), WORK.items())
def test_work_of_an_instruction(line, expected):
    (function,) = machine_functions(code(line))
    found = work_of(function.blocks[0][0])
    assert {name: found.get(name) for name in expected} == expected
    assert found["instructions"] == 1


def test_operands_keep_their_addresses():
    (function,) = machine_functions(code("vaddps -4(%rsi,%rax,4), %ymm0, %ymm1  # comment"))
    expected = MachineInstruction("vaddps", ("-4(%rsi,%rax,4)", "%ymm0", "%ymm1"))
    assert function.blocks[0][0] == expected
