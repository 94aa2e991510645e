"""Binary heaps of items in compiled code: the highest priority first, the lower item among equals.

Several heaps may share one array; each begins at a ``base`` of its own.
"""

from __future__ import annotations

from typing import no_type_check

from go_rl.core.compiled_struct import compiled


@compiled
@no_type_check
def push(heap, base, size, priority, item):
    """Add an item; return the new size."""
    at = size
    while at > 0:
        parent = (at - 1) >> 1
        if not _before(priority, item, heap[base + parent]):
            break
        heap[base + at] = heap[base + parent]
        at = parent
    heap[base + at] = item
    return size + 1


@compiled
@no_type_check
def pop(heap, base, size, priority):
    """Take the first item, ``heap[base]``, off; return the new size."""
    size -= 1
    item, at = heap[base + size], 0
    while True:
        child = 2 * at + 1
        if child >= size:
            break
        if child + 1 < size and _before(priority, heap[base + child + 1], heap[base + child]):
            child += 1
        if not _before(priority, heap[base + child], item):
            break
        heap[base + at] = heap[base + child]
        at = child
    heap[base + at] = item
    return size


@compiled
@no_type_check
def _before(priority, a, b):
    return priority[a] > priority[b] or (priority[a] == priority[b] and a < b)
