"""The separable allocator (yum-2006 3.1): one choice an input, one an output, and a sweep over the rest."""

from __future__ import annotations

from amaranth import Module

from ...working import works_when
from .allocator import Allocator

__all__ = ["SeparableAllocator"]


class SeparableAllocator(Allocator):
    """Every input picks one of its VLs, then every output one of the inputs that come for it.

    An input picks by its VL arbiter (`RouterConfig.vl_arbiter`), an output by `RouterConfig.arbiter`. With any
    `vl_arbiter` but round robin an output has a VL arbiter of its own, and picks among the output VLs that the inputs
    come with. If packets then keep their VL, the order is turned round: every output picks among all VLs that ask for
    it, then every input among those that were picked. Shares of an output are then exact, whatever else its inputs have
    to send. An arbiter takes its turn only if its choice is followed. So with round robin an input that lost at an
    output comes with the same VL again until it wins. Inputs that come with the control VL go before all others at an
    output.

    These choices alone would leave outputs idle. If all inputs come for random ones of P outputs, 1 - (1 - 1/P)^P of
    the outputs are used, 0.67 with 5. So a sweep (`Allocator._sweep`) then matches the inputs and outputs that are
    left, which makes the matching maximal. An input sends a VL in turn among those that ask for the output that it was
    given. A match of the sweep takes no arbiter's turn, is not charged in the tables of the VL arbiters, and turns down
    no choice. With one VL an input asks for one output, the choices leave nothing, and there is no sweep.

    Longest wait: `wait_bound`. With round robin, control VL aside, it is made of these parts:

    - An input's choice is followed after at most P - 1 other inputs. Whenever a VL that is nearer in turn begins to
      ask, the choice moves to it, at most `vls - 1` times. So an input that asks is accepted within `vls` (P - 1) + 1
      cycles.
    - A VL whose request stays lets each other VL of its input go first once. Each of them may come to be the choice
      that late: `vls` P + (`vls` - 1) (P - 1) cycles.
    """

    def elaborate(self, platform: object) -> Module:
        m = Module()
        firsts, grants, goes = self._first_choices(m)
        if self._vls > 1:
            asks, free_inputs, free_outputs = self._left(m, grants, goes)
            m.submodules.sweep = sweep = Module()
            works_when(
                sweep,
                *((ask & free_outputs).any() & free for ask, free in zip(asks, free_inputs, strict=True)),
            )
            filled, *_ = self._sweep(sweep, asks, free_inputs, free_outputs)
            self._answer(m, firsts, grants, goes, filled)
            return m
        for i, first in enumerate(firsts):
            m.d.comb += [self.select[i].eq(first), self.accepted[i].eq(goes[i])]
        for p, grant in enumerate(grants):
            m.d.comb += self.grant[p].eq(grant)
        return m
