"""Workloads whose candidates the tests of loop nests lower, and how these are drawn."""

from typing import Any

from go_rl.costs.programs.nests.tvm_lowering import import_meta_schedule
from go_rl.costs.timing.tvm_calls import import_tvm

CPU = {"kind": "llvm", "mcpu": "x86-64-v3", "num-cores": 1}
GPU = {
    "kind": "cuda", "arch": "sm_70", "max_threads_per_block": 1024, "thread_warp_size": 32,
    "max_shared_memory_per_block": 49152,
}  # fmt: skip
"""A GPU that need not be there: nothing is compiled for it."""
NAMES = ("matmul", "batch_matmul", "conv2d", "strided_conv2d", "softmax", "norm")


def workload(name: str) -> tuple[Any, ...]:
    """Return the tensors of a workload, each with a name of its own."""
    import_meta_schedule()
    from tvm.s_tir.meta_schedule.testing import te_workload as known

    makers = {
        "matmul": lambda: known.matmul(64, 128, 96),
        "batch_matmul": lambda: known.batch_matmul_nkkm(4, 32, 32, 64),
        "conv2d": lambda: known.conv2d_nhwc(1, 14, 14, 32, 64, 3, 1, 1),
        "strided_conv2d": lambda: known.conv2d_nhwc(1, 15, 15, 16, 32, 3, 2, 1, groups=4),
        "softmax": lambda: known.softmax_mn(64, 128),
        "norm": lambda: known.norm_bmn(2, 64, 64),
    }
    return makers[name]()


def drawn(name: str, target: dict[str, Any], count: int) -> tuple[Any, Any]:
    """Return MetaSchedule's context and random candidates of a workload."""
    tvm, schedules = import_tvm(), import_meta_schedule()
    function = tvm.te.create_prim_func(list(workload(name)))
    module = tvm.IRModule({"main": function.with_attr("global_symbol", "main")})
    context = schedules.TuneContext(
        module, target=tvm.target.Target(target), space_generator="post-order-apply",
        search_strategy="replay-trace", rand_state=1, num_threads=1,
    )  # fmt: skip
    spaces = context.generate_design_space()
    context.pre_tuning(max_trials=count, num_trials_per_iter=count, design_spaces=spaces)
    return context, context.generate_measure_candidates()
