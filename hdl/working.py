"""Modules that say when they have anything to do, for simulators to pass them over meanwhile."""

from __future__ import annotations

from amaranth import Cat, Module, Signal, Value

__all__ = ["WORKING", "works_when"]

WORKING = "working"
"""Name of the wire that says so in a module."""


def works_when(m: Module, *needs: Value) -> None:
    """Say that `m` has nothing to do while all bits of `needs` are low.

    Then these must hold while `rst` is low, with all instances of `m` counted in:

    - None of its registers and memories changes.
    - Each of its outputs that does not come straight from a register is 0, or nobody looks at it.

    It is a wire that no logic takes: synthesis drops it. A simulator that compiles the module may make one branch of it
    (`sim/build/branches.py`), and then evaluates all its outputs together. So no output should follow from an input
    that follows from another output, and `needs` should not follow from inputs of a compiled block.
    """
    working = Signal(name=WORKING)
    m.d.comb += working.eq(Cat(*needs).any())
