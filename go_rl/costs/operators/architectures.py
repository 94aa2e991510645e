"""Properties that the architecture of a GPU decides: the kernels of its libraries, the energy of a
FLOP."""

from __future__ import annotations

from collections.abc import Collection

from go_rl.costs.devices import DataSheet

PASCAL, VOLTA, AMPERE, HOPPER = range(4)
GENERATIONS = {"kepler": PASCAL, "maxwell": PASCAL, "pascal": PASCAL, "volta": VOLTA,
               "turing": VOLTA, "ampere": AMPERE, "ada": AMPERE, "hopper": HOPPER,
               "blackwell": HOPPER}  # fmt: skip
"""Generations of the float32 products of NVIDIA's library: architectures with one number run the
same kernels (``maxwell_sgemm``, ``volta_sgemm``, ``ampere_sgemm``); Hopper's come with a newer
library and framework."""
GENERATION_COUNT = 4
WITH_WINOGRAD = (PASCAL, VOLTA, AMPERE)
"""Generations whose library has Winograd's convolutions in float32. On an H200 with cuDNN 9 none
took less than 1.6 times what its multiplications take at the peak, and no kernel of an H100 is one
of them."""
PICOJOULES = {"kepler": 50.0, "maxwell": 32.0, "pascal": 25.0, "volta": 17.0, "turing": 25.0,
              "ampere": 13.0, "ada": 6.0, "hopper": 7.0, "blackwell": 6.0, "cdna": 7.0,
              "cdna2": 6.0}  # fmt: skip
"""Energy of one FLOP of a product, its share of the board's included: such that the largest boards
of a generation (P100, V100, A100, RTX 4090) reach their peak within their power; Turing, in the
process of Pascal, as Pascal."""
USUAL_PICOJOULES = 13.0
BANDWIDTH_PER_WATT = 4e9
"""Bytes per second for each watt where a data sheet does not state its power: 2.6e9 (P4) to 6.2e9
(A100), median 4e9."""


def generation_of(sheet: DataSheet) -> int | None:
    """Return the generation of the library's kernels; None: another vendor's, or unknown."""
    return GENERATIONS.get(sheet.architecture or "")


def known_generations(own: int | None, measured: Collection[int]) -> frozenset[int]:
    """Return the measured generations whose kernels a library is taken to run: its own, else the
    last one before it, else the first; all of a library that is unknown."""
    if own is None or not measured:
        return frozenset(measured)
    before = [each for each in measured if each <= own]
    return frozenset([max(before) if before else min(measured)])


def power_ratio(sheet: DataSheet) -> float:
    """Return the power that products at their peak would take, over what the board may take.

    Small boards (P4, T4, L4) have a peak of two to three times their power.
    """
    watts = sheet.board_watts or sheet.memory_bandwidth / BANDWIDTH_PER_WATT
    energy = PICOJOULES.get(sheet.architecture or "", USUAL_PICOJOULES) * 1e-12
    return sheet.matrix_flops * energy / watts
