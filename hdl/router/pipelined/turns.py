"""Round robin among the bits of a vector, worked out in parallel."""

from __future__ import annotations

from amaranth import Cat, Signal, Value

__all__ = ["above", "in_turn"]


def in_turn(candidates: Signal, mask: Signal) -> Value:
    """The lowest of `candidates` in `mask`, or the lowest of all if none is in it: one-hot, or 0.

    It is `rotating_pick` without a carry chain: each bit looks at all lower ones, and the two cases side by side.
    """
    later = candidates & mask
    none_later = ~later.any()
    return Cat(
        *(
            candidates[i] & ((mask[i] & ~later[:i].any()) | (none_later & ~candidates[:i].any()))
            for i in range(len(candidates))
        )
    )


def above(one_hot: Value) -> Value:
    """The bits above the one that is set; none after the last."""
    return Cat(*(one_hot[:i].any() for i in range(len(one_hot))))
