"""`Tiles`: how the loops of a kernel are cut."""

from __future__ import annotations

from dataclasses import dataclass

from go_rl.costs.tiles.loops import TileError, json_object, whole_number
from go_rl.runtime.records import canonical_json

FIELDS = ("cache", "reduction_outside", "register", "unroll")


@dataclass(frozen=True)
class Tiles:
    """Tile sizes of a program's loops, in the order of ``program.loops``; `TiledProgram` says what
    they mean and which fit a program.

    Raises:
        TileError: sizes that are no whole numbers >= 1, or lists of different lengths.
    """

    cache: tuple[int, ...]
    """Iterations of each loop in a cache tile; the last tile of a loop may be partial."""
    register: tuple[int, ...]
    """Iterations of each loop in a register tile: divides the cache tile and the loop."""
    unroll: bool = False
    """Whether the schedule unrolls the loops of the register tile."""
    reduction_outside: bool = False
    """Whether all results are updated once for each cache tile of the reducing loops, instead of
    being finished one cache tile after the other."""

    def __post_init__(self) -> None:
        if len(self.cache) != len(self.register):
            raise TileError(
                f"tiles: {len(self.cache)} cache tiles but {len(self.register)} register tiles"
            )
        for size in (*self.cache, *self.register):
            whole_number("tiles: a size", size)

    @property
    def setting(self) -> str:
        """The canonical JSON: what tells records of one program apart."""
        return canonical_json({name: getattr(self, name) for name in FIELDS})

    @staticmethod
    def from_json(text: str) -> Tiles:
        """Read what `setting` wrote, in whatever order and spacing; a `TileError` names a fault."""
        found = json_object("tiles are", text, FIELDS)
        for name in ("cache", "register"):
            if not isinstance(found[name], list):
                raise TileError(f"tiles: {name} must be a list, not {found[name]!r}")
        for name in ("unroll", "reduction_outside"):
            if not isinstance(found[name], bool):
                raise TileError(f"tiles: {name} must be true or false, not {found[name]!r}")
        cache, register = (
            tuple(whole_number("tiles: a size", size) for size in found[name])
            for name in ("cache", "register")
        )
        return Tiles(cache, register, found["unroll"], found["reduction_outside"])
