"""Plain twins of the allocator's compiled functions, and brute force for small cases."""

Triple = tuple[int, int, int]
"""A buffer as (lower, upper, size)."""


def overlap(a: Triple, b: Triple) -> bool:
    """Whether both are live at some step."""
    return a[0] < b[1] and b[0] < a[1]


def live_sets(buffers: list[Triple]) -> list[frozenset[int]]:
    """The sets of buffers live at each step, in order of time, less those contained in another."""
    steps = sorted({b[0] for b in buffers})
    live = [frozenset(i for i, b in enumerate(buffers) if b[0] <= t < b[1]) for t in steps]
    return [s for s in live if not any(s < other for other in live)]


def first_fit(buffers: list[Triple], order: list[int]) -> list[int]:
    """Place buffers in order, each at the lowest free offset: 0 or the end of an earlier one."""
    offsets: dict[int, int] = {}
    for i in order:
        others = [j for j in offsets if overlap(buffers[i], buffers[j])]
        for offset in sorted({0, *(offsets[j] + buffers[j][2] for j in others)}):
            if all(
                offset + buffers[i][2] <= offsets[j] or offsets[j] + buffers[j][2] <= offset
                for j in others
            ):
                offsets[i] = offset
                break
    return [offsets[i] for i in range(len(buffers))]


def least_height(buffers: list[Triple]) -> int:
    """The least bytes any allocation uses, by trying every order of placement from the bottom up.

    Sliding every buffer down leaves each on the floor or on an earlier one, so those are enough.
    """
    best = sum(b[2] for b in buffers)

    def place(offsets: dict[int, int], lowest: int) -> None:
        nonlocal best
        if len(offsets) == len(buffers):
            best = max(o + buffers[i][2] for i, o in offsets.items())
        for i in set(range(len(buffers))) - set(offsets):
            under = [
                o + buffers[j][2] for j, o in offsets.items() if overlap(buffers[i], buffers[j])
            ]
            floor = max(under, default=0)
            if floor >= lowest and floor + buffers[i][2] < best:
                place({**offsets, i: floor}, floor)

    place({}, 0)
    return best
