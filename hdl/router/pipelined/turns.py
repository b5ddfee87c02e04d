"""Choices among the bits of a vector, worked out in parallel."""

from __future__ import annotations

from amaranth import Cat, Signal, Value

__all__ = ["above", "lowest"]


def lowest(candidates: Signal) -> Value:
    """The lowest of `candidates`: one-hot, or 0. Each bit looks at all lower ones: there is no carry chain."""
    return Cat(*(candidates[i] & ~candidates[:i].any() for i in range(len(candidates))))


def above(one_hot: Value) -> Value:
    """The bits above the one that is set; none after the last."""
    return Cat(*(one_hot[:i].any() for i in range(len(one_hot))))
