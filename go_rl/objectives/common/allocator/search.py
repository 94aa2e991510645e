"""Complete backtracking search for offsets, after MiniMalloc (Moffitt, ASPLOS 2023).

Buffers are placed in *canonical* order: by offset, equal offsets by index, each resting on what
was placed before it. Every feasible instance has such a solution (slide each buffer down), so only
those are tried. A partial solution is dropped when

- *section inference*: in some section the unplaced buffers, none below its own floor, end above
  the capacity. Here they are stacked in order of floor, the exact one-machine makespan with
  release times, where MiniMalloc adds their sum to the lowest floor;
- *dominance*: the next buffer would leave below it a hole that an unplaced buffer fits into;
- *lifting*: a buffer that was passed over must still be raised, so its floor is above the lowest
  end of an unplaced buffer that overlaps it.

When no unplaced buffer links two stretches of sections, each becomes a *part* solved on its own;
if one has no solution, the search jumps back to the placement that separated them.
The search is a loop over explicit stacks: it can stop after any number of nodes and go on later.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Any, no_type_check

import numpy as np
from jaxtyping import Bool, Int64
from numba import njit

from go_rl.core.compiled_struct import CompiledStruct, compiled
from go_rl.objectives.common.allocator.sections import covering

SOLVED, EXHAUSTED, RUNNING = 0, 1, 2
NONE = -1
"""No frame, no part, no buffer."""
NEVER = 2**63 - 1
BITS = 20
MASK = 2**BITS - 1
DEPTH, TRAIL, PLACED, PARTS = 0, 1, 2, 3
ALLOCATES: dict[str, Any] = {"cache": True, "_nrt": True}
"""Options of a function that allocates; it would inherit those of its `compiled` caller."""


@dataclass(frozen=True, eq=False)
class SearchState(CompiledStruct):
    """The whole state of one search. ``B`` buffers, ``S`` sections, ``P`` overlapping pairs."""

    first: Int64[np.ndarray, "B"]
    """[B] first section of each buffer; buffers come in order of preference."""
    last: Int64[np.ndarray, "B"]
    """[B] last section, inclusive."""
    size: Int64[np.ndarray, "B"]
    """[B] bytes of each buffer."""
    twin: Int64[np.ndarray, "B"]
    """[B] the previous buffer with the same sections and size, or NONE."""
    by_first: Int64[np.ndarray, "B"]
    """[B] the buffers by first section."""
    begin: Int64[np.ndarray, "starts"]
    """[S + 1] where in ``by_first`` those of each section begin."""
    floor: Int64[np.ndarray, "B"]
    """[B] the lowest offset left to a buffer; its offset once placed."""
    is_placed: Bool[np.ndarray, "B"]
    """[B] whether the buffer has its offset."""
    cuts: Int64[np.ndarray, "S"]
    """[S] unplaced buffers live in both section s and s + 1."""
    top: Int64[np.ndarray, "4"]
    """[4] the current frame and the heights of the trail, the placed stack and the parts stack."""
    trail: Int64[np.ndarray, "P 2"]
    """[P, 2] buffers whose floor was raised, and the floor before."""
    placed: Int64[np.ndarray, "B"]
    """[B] buffers in the order of placement."""
    frames: Int64[np.ndarray, "B 7"]
    """[B, 7] one row a choice point; columns as in FRAME_*."""
    parts: Int64[np.ndarray, "parts 5"]
    """[B + 2 S + 2, 5] independent stretches of sections; columns as in PART_*."""
    member: Int64[np.ndarray, "B"]
    """[B] scratch: the unplaced buffers of a part."""
    key: Int64[np.ndarray, "B"]
    """[B] scratch: sort keys of unplaced buffers."""
    finish: Int64[np.ndarray, "S"]
    """[S] scratch: where the stack of each section ends."""


FRAME_PART, FRAME_FAIL, FRAME_KEY, FRAME_CEILING, FRAME_TRAIL, FRAME_PLACED, FRAME_PARTS = range(7)
PART_FIRST, PART_LAST, PART_NEXT, PART_FAIL, PART_KEY = range(5)


def start_search(
    first: Int64[np.ndarray, "B"], last: Int64[np.ndarray, "B"], size: Int64[np.ndarray, "B"]
) -> SearchState:
    """Return a search over buffers in their order of preference, before its first node."""
    count, sections = len(size), int(last.max()) + 1
    by_first = np.argsort(first, kind="stable")
    state = SearchState(
        first=first,
        last=last,
        size=size,
        twin=_twins(first, last, size),
        by_first=by_first,
        begin=np.searchsorted(first[by_first], np.arange(sections + 1)),
        floor=np.zeros(count, np.int64),
        is_placed=np.zeros(count, np.bool_),
        cuts=covering(first, last, np.ones_like(first), sections),
        top=np.array([0, 0, 0, 1]),
        trail=np.empty((_overlapping_pairs(first, last), 2), np.int64),
        placed=np.empty(count, np.int64),
        frames=np.empty((count, 7), np.int64),
        parts=np.empty((2 * sections + count + 2, 5), np.int64),
        member=np.empty(count, np.int64),
        key=np.empty(count, np.int64),
        finish=np.empty(sections, np.int64),
    )
    state.parts[0] = (0, sections - 1, NONE, NONE, NONE)
    state.frames[0] = (0, NONE, NONE, size.min(), 0, 0, 1)
    return state


def _twins(
    first: Int64[np.ndarray, "B"], last: Int64[np.ndarray, "B"], size: Int64[np.ndarray, "B"]
) -> Int64[np.ndarray, "B"]:
    """[B] the previous buffer that is interchangeable with each, or NONE."""
    twin, seen = np.full(len(size), NONE, np.int64), {}
    for buffer, likeness in enumerate(
        zip(first.tolist(), last.tolist(), size.tolist(), strict=True)
    ):
        twin[buffer] = seen.get(likeness, NONE)
        seen[likeness] = buffer
    return twin


def _overlapping_pairs(first: Int64[np.ndarray, "B"], last: Int64[np.ndarray, "B"]) -> int:
    """The number of pairs of buffers that share a section: those that end not before one begins."""
    begun = np.searchsorted(np.sort(first), last, side="right")
    over = np.searchsorted(np.sort(last), first, side="left")
    return int((begun - over).sum() - len(first)) // 2 + 1


@compiled
@no_type_check
def run_search(state, capacity, nodes):
    """Try up to ``nodes`` more placements; return SOLVED (offsets in ``floor``), EXHAUSTED (none
    exist) or RUNNING."""
    for _ in range(nodes):
        depth = state.top[DEPTH]
        if depth == NONE:
            return EXHAUSTED
        frame = state.frames[depth]
        _undo(state, frame)
        buffer = _next_buffer(state, frame)
        if buffer == NONE:
            state.top[DEPTH] = frame[FRAME_FAIL]
            continue
        frame[FRAME_KEY] = (state.floor[buffer] << BITS) + buffer
        part = frame[FRAME_PART]
        _place(state, part, buffer)
        if not _may_fit(state, part, frame[FRAME_KEY], capacity):
            continue
        if not _open_frame(state, _split(state, part, buffer, depth)):
            return SOLVED
    return RUNNING


@compiled
@no_type_check
def _gather(state, part):
    """Write the unplaced buffers of a part to ``member`` and return their number."""
    is_placed, by_first, member = state.is_placed, state.by_first, state.member
    start, stop = state.parts[part, PART_FIRST], state.parts[part, PART_LAST]
    count = 0
    # An unplaced buffer never leaves its part, so the first section tells where it belongs.
    for b in range(state.begin[start], state.begin[stop + 1]):
        if not is_placed[by_first[b]]:
            member[count] = by_first[b]
            count += 1
    return count


@compiled
@no_type_check
def _push_part(state, first, last, then, fail, key):
    """Add a part: its sections, the part to solve after it, the frame to fall back to, and the
    canonical key that its buffers must exceed."""
    part = state.top[PARTS]
    row = state.parts[part]
    row[PART_FIRST], row[PART_LAST], row[PART_NEXT] = first, last, then
    row[PART_FAIL], row[PART_KEY] = fail, key
    state.top[PARTS] = part + 1
    return part


@compiled
@no_type_check
def _open_frame(state, part):
    """Open a choice point in the first of the linked parts with an unplaced buffer; False if none
    has one, so that all is placed."""
    floor, size, member = state.floor, state.size, state.member
    count = 0
    while part != NONE:
        count = _gather(state, part)
        if count > 0:
            break
        part = state.parts[part, PART_NEXT]
    if part == NONE:
        return False
    ceiling = NEVER
    for m in range(count):
        ceiling = min(ceiling, floor[member[m]] + size[member[m]])
    depth = state.top[PLACED]
    frame = state.frames[depth]
    frame[FRAME_PART], frame[FRAME_CEILING] = part, ceiling
    frame[FRAME_FAIL], frame[FRAME_KEY] = state.parts[part, PART_FAIL], state.parts[part, PART_KEY]
    frame[FRAME_TRAIL], frame[FRAME_PLACED] = state.top[TRAIL], depth
    frame[FRAME_PARTS] = state.top[PARTS]
    state.top[DEPTH] = depth
    return True


@compiled
@no_type_check
def _undo(state, frame):
    """Take back every placement made since the frame was opened."""
    for p in range(frame[FRAME_PLACED], state.top[PLACED]):
        buffer = state.placed[p]
        state.is_placed[buffer] = False
        for s in range(state.first[buffer], state.last[buffer]):
            state.cuts[s] += 1
    for t in range(state.top[TRAIL] - 1, frame[FRAME_TRAIL] - 1, -1):
        state.floor[state.trail[t, 0]] = state.trail[t, 1]
    state.top[TRAIL] = frame[FRAME_TRAIL]
    state.top[PLACED] = frame[FRAME_PLACED]
    state.top[PARTS] = frame[FRAME_PARTS]


@compiled
@no_type_check
def _next_buffer(state, frame):
    """The next buffer in canonical order that leaves no hole for another, or NONE."""
    floor, is_placed, twins = state.floor, state.is_placed, state.twin
    bound, ceiling = frame[FRAME_KEY], frame[FRAME_CEILING]
    best, best_key = NONE, NEVER
    for m in range(_gather(state, frame[FRAME_PART])):
        i = state.member[m]
        key = (floor[i] << BITS) + i
        if bound < key < best_key and floor[i] < ceiling:
            twin = twins[i]
            if twin == NONE or is_placed[twin]:
                best, best_key = i, key
    return best


@compiled
@no_type_check
def _place(state, part, buffer):
    """Fix the buffer at its floor and raise the floors of unplaced buffers that overlap it."""
    firsts, lasts, floor, member = state.first, state.last, state.floor, state.member
    trail, trailed = state.trail, state.top[TRAIL]
    first, last = firsts[buffer], lasts[buffer]
    end = floor[buffer] + state.size[buffer]
    state.is_placed[buffer] = True
    state.placed[state.top[PLACED]] = buffer
    state.top[PLACED] += 1
    for s in range(first, last):
        state.cuts[s] -= 1
    for m in range(_gather(state, part)):
        i = member[m]
        if firsts[i] <= last and first <= lasts[i] and floor[i] < end:
            trail[trailed, 0], trail[trailed, 1] = i, floor[i]
            trailed += 1
            floor[i] = end
    state.top[TRAIL] = trailed


@compiled
@no_type_check
def _may_fit(state, part, bound, capacity):
    """Whether no section of the part must overflow: stack its buffers in order of release."""
    first, last, size, finish = state.first, state.last, state.size, state.finish
    count = _gather(state, part)
    if not _release(state, count, bound, capacity):
        return False
    order = state.key[:count]
    _sort(order)
    finish[state.parts[part, PART_FIRST] : state.parts[part, PART_LAST] + 1] = 0
    for k in range(count):
        release, i = order[k] >> BITS, order[k] & MASK
        for s in range(first[i], last[i] + 1):
            end = max(finish[s], release) + size[i]
            if end > capacity:
                return False
            finish[s] = end
    return True


@njit(**ALLOCATES)
@no_type_check
def _sort(keys):
    """Sort in place: quicksort, whose stack is allocated."""
    keys.sort()


@compiled
@no_type_check
def _release(state, count, bound, capacity):
    """Write the sort key of each member, its floor lifted if it was passed over; False if one can
    never be placed."""
    floor, size, member, keys = state.floor, state.size, state.member, state.key
    lowest_end = np.int64(NEVER)
    for m in range(count):
        i = member[m]
        keys[m] = (floor[i] << BITS) + i
        if keys[m] > bound:
            lowest_end = min(lowest_end, floor[i] + size[i])
    if lowest_end == NEVER:
        return count == 0
    for m in range(count):
        i = member[m]
        if (floor[i] << BITS) + i < bound:
            lifted = _lifted(state, count, i, bound, lowest_end)
            if lifted + size[i] > capacity:
                return False
            keys[m] = (lifted << BITS) + i
    return True


@compiled
@no_type_check
def _lifted(state, count, buffer, bound, lowest_end):
    """The lowest end of an unplaced buffer that a passed-over buffer may come to rest on."""
    firsts, lasts, floor, member = state.first, state.last, state.floor, state.member
    first, last = firsts[buffer], lasts[buffer]
    lifted = NEVER - 2**62
    for m in range(count):
        i = member[m]
        if firsts[i] <= last and first <= lasts[i] and i != buffer:
            release = floor[i]
            if (release << BITS) + i < bound:
                release = lowest_end
            lifted = min(lifted, release + state.size[i])
    return lifted


@compiled
@no_type_check
def _split(state, part, buffer, depth):
    """Return the part to go on with: what is left of ``part``, cut where nothing links it."""
    key = state.frames[depth, FRAME_KEY]
    then, last = state.parts[part, PART_NEXT], state.parts[part, PART_LAST]
    for s in range(state.last[buffer] - 1, state.first[buffer] - 1, -1):
        if state.cuts[s] == 0:
            then = _push_part(state, s + 1, last, then, depth, key)
            last = s
    return _push_part(state, state.parts[part, PART_FIRST], last, then, depth, key)


def compile_search() -> float:
    """Compile the search, or load it from Numba's cache; return the seconds that took."""
    start = time.monotonic()
    one = np.ones(1, np.int64)
    run_search(start_search(one - 1, one - 1, one), 1, 0)
    return time.monotonic() - start
