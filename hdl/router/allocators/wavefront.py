"""The separable allocator, and an exchange that matches more than its wavefront does."""

from __future__ import annotations

from functools import reduce
from operator import or_

from amaranth import Cat, Module, Mux, Signal, Value

from ...vl_arbiter.base import lowest_bit, rotating_pick
from .allocator import Allocator

__all__ = ["WavefrontAllocator"]


class WavefrontAllocator(Allocator):
    """The `SeparableAllocator`, and one exchange that lets one more input in.

    The exchange is an augmenting path of length 3. An input that is still free after the sweep takes an output from
    another input. The sweep must have given that output, and the other input must be able to go to a free output
    instead. So the matching is often larger than a maximal one. An input sends a VL in turn among those that ask for
    the output that it was given.

    Priorities and waits are the separable allocator's. An output that is given beyond the first choices was asked for
    by none of them. It takes no arbiter's turn and is not charged in the tables of the VL arbiters, as a share that
    others leave is not. A first choice is never turned down for the sake of the others. So the bounds of the separable
    allocator (`wait_bound`) hold as they stand.

    Cost: the exchange's path behind the separable allocator's.
    """

    def elaborate(self, platform: object) -> Module:
        m = Module()
        firsts, grants, goes = self._first_choices(m)
        asks, free_inputs, free_outputs = self._left(m, grants, goes)
        filled, inputs, outputs, late = self._sweep(m, asks, free_inputs, free_outputs)
        filled = self._exchange(m, asks, filled, inputs, outputs, late)

        self._answer(m, firsts, grants, goes, filled)
        return m

    def _exchange(
        self,
        m: Module,
        asks: list[Value],
        filled: list[Signal],
        inputs: Value,
        outputs: Value,
        turn: Signal,
    ) -> list[Signal]:
        """`filled` (for each input the one-hot output that the wavefront gave it) after the exchange.

        - `asks`: the outputs that each input asks for.
        - `inputs`, `outputs`: those that are free.
        - `turn`: the inputs that come first.
        """
        size, ports = self._ports, range(self._ports)
        movable, wanting, taken, goal = (
            Signal(size, name=name) for name in ("movable", "wanting", "exchanged", "goal")
        )
        m.d.comb += [
            # Outputs whose input has another place to go, and free inputs that ask for one of them.
            movable.eq(reduce(or_, (Mux((asks[i] & outputs).any(), filled[i], 0) for i in ports))),
            wanting.eq(Cat(*(inputs[i] & (asks[i] & movable).any() for i in ports))),
        ]
        newcomer = rotating_pick(m, wanting, turn, "newcomer")
        asked = reduce(or_, (Mux(newcomer[i], asks[i], 0) for i in ports))
        moves = [(filled[i] & taken).any() for i in ports]
        choices = reduce(or_, (Mux(moves[i], asks[i], 0) for i in ports)) & outputs
        m.d.comb += [taken.eq(lowest_bit(asked & movable)[:size]), goal.eq(lowest_bit(choices)[:size])]
        after = []
        for i in ports:
            row = Signal(size, name=f"after_exchange_{i}")
            m.d.comb += row.eq(Mux(newcomer[i], taken, Mux(moves[i], goal, filled[i])))
            after.append(row)
        return after
