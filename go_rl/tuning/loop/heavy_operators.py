"""`heavy_operators`: the few operators that make up most of a network's FLOP."""

from __future__ import annotations

from collections.abc import Sequence

from go_rl.tuning.loop.nouns import TunedOperator


def heavy_operators(operators: Sequence[TunedOperator], share: float) -> tuple[int, ...]:
    """Return the numbers of the fewest operators that make up a share of a network's FLOP, the
    heaviest first: kernels are sorted by occurrences and FLOP (Verma et al. 2023, section 4.4).

    Args:
        operators: of a network.
        share: of the FLOP of all, in (0, 1].
    """
    if share >= 1:
        return tuple(range(len(operators)))
    flops = [each.flops * each.repeats for each in operators]
    wanted, found, total = share * sum(flops), [], 0.0
    for k in sorted(range(len(operators)), key=lambda k: (-flops[k], k)):
        if total >= wanted * (1 - 1e-9) and found:
            break
        found.append(k)
        total += flops[k]
    return tuple(found)
