"""The separable allocator's choices, and a wavefront that gives what they leave free."""

from __future__ import annotations

from functools import reduce
from operator import or_

from amaranth import Cat, Module, Mux, Signal, Value

from ...arbiter.vl import lowest_bit, rotating_pick
from .allocator import Allocator

__all__ = ["WavefrontAllocator"]


class WavefrontAllocator(Allocator):
    """First every input and output choose as in the `SeparableAllocator`; then a wrapped wavefront (Tamir and
    Chi, IEEE Trans. Parallel and Distributed Systems 4(1), 1993) matches the inputs and outputs that are left;
    then one exchange lets one more input in.

    The wavefront visits the diagonals of the matrix of inputs and outputs one after the other, from one that
    moves on whenever something was given; the cells of a diagonal share no input and no output, so a cell is
    given if it asks and both are still free. The exchange is an augmenting path of length 3: an input that is
    still free takes an output from another input, if the wavefront gave it and that input can go to a free
    output instead. An input sends a VL in turn among those that ask the output that it was given.

    The matching is maximal: no free input asks for a free output (inputs that throw a flit away are not free).

    Priorities and waits are the separable allocator's: what is given beyond it was asked for by no first
    choice, it takes no arbiter's turn and is not charged in the tables of the VL arbiters, as a share that
    others leave is not. So the bounds of the separable allocator hold as they stand: a first choice is never
    turned down for the sake of the others. With round robin an input that asks is accepted
    within `vls` (P - 1) + 1 cycles, a VL whose request stays within `vls` P + (`vls` - 1) (P - 1).

    Cost: a path of 2 P - 1 cells behind the separable allocator's, then the exchange's.
    """

    def elaborate(self, platform: object) -> Module:
        m = Module()
        size, ports = self._ports, range(self._ports)
        schedulers, grants, goes = self._first_choices(m)

        # Diagonal d has the cells (i, (d - i) mod P); bit i of its vectors is input i.
        free_inputs, free_outputs = Signal(size, init=0), Signal(size, init=0)
        m.d.comb += [
            free_inputs.eq(~Cat(*goes)),
            free_outputs.eq(~Cat(*(grant.any() for grant in grants))),
        ]
        asks = [[self.request[i][p].any() for p in ports] for i in ports]
        cells = []
        for d in ports:
            diagonal = Signal(size, name=f"diagonal_{d}")
            m.d.comb += diagonal.eq(Cat(*(asks[i][(d - i) % size] for i in ports)))
            cells.append(diagonal)
        # Diagonals from the first one on, then those before it: `late` has the ones that come first.
        late = Signal(size, init=(1 << size) - 1)
        given: list[list[Value]] = [[] for _ in ports]
        inputs, outputs = free_inputs, free_outputs
        for step in range(2 * size - 1):
            d = step % size
            gate = late[d] if step < size else ~late[d]
            cell, rest_in, rest_out = (
                Signal(size, name=f"{name}_{step}") for name in ("cell", "inputs", "outputs")
            )
            m.d.comb += [
                cell.eq(
                    cells[d] & inputs & Cat(*(outputs[(d - i) % size] for i in ports)) & gate.replicate(size)
                ),
                rest_in.eq(inputs & ~cell),
                rest_out.eq(outputs & ~Cat(*(cell[(d - p) % size] for p in ports))),
            ]
            given[d].append(cell)
            inputs, outputs = rest_in, rest_out
        diagonals = [reduce(or_, cells) for cells in given]
        filled = []
        for i in ports:
            row = Signal(size, name=f"filled_{i}")
            m.d.comb += row.eq(Cat(*(diagonals[(i + p) % size][i] for p in ports)))
            filled.append(row)
        with m.If(inputs != free_inputs):
            # The next start: all diagonals again after the last one.
            m.d.sync += late.eq(Mux(late[: size - 1].any(), late << 1, (1 << size) - 1))
        filled = self._exchange(m, [Cat(*row) for row in asks], filled, inputs, outputs, late)

        self._answer(m, schedulers, grants, goes, filled)
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
        """`filled` (for each input the one-hot output that the wavefront gave it) after the exchange. `asks`: of each
        input, the outputs; `inputs`, `outputs`: those that are free; `turn`: the inputs that come first."""
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
