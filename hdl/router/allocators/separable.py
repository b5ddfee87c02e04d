"""The separable allocator (yum-2006 3.1): one choice an input, one an output, and what they leave."""

from __future__ import annotations

from amaranth import Module

from .allocator import Allocator

__all__ = ["SeparableAllocator"]


class SeparableAllocator(Allocator):
    """Every input picks one of its VLs, then every output one of the inputs that come for it.

    An input picks by its VL arbiter (`RouterConfig.vl_arbiter`), an output by `RouterConfig.arbiter` or, with any
    `vl_arbiter` but round robin, by a VL arbiter of its own among the output VLs that the inputs come with. If packets
    keep their VL, that order is turned round: every output picks among all VLs that ask for it, then every input among
    those that were picked. Shares of an output are then exact, whatever else its inputs have to send. An
    arbiter takes its turn only if its choice is followed, so with round robin an input that lost at an output
    comes with the same VL again until it wins. Inputs that come with the control VL go before all others at an
    output.

    These choices alone would leave outputs idle: if all inputs come for random ones of P outputs, 1 - (1 - 1/P)^P
    of the outputs are used, 0.67 with 5. So a sweep (`Allocator._sweep`) then matches the inputs and outputs that are
    left, which makes the matching maximal. An input sends a VL in turn among those that ask for the output that it was
    given. What is given there takes no arbiter's turn and is not charged in the tables of the VL arbiters, and it turns
    down no choice. With one VL an input asks for one output, the choices leave nothing, and there is no sweep.

    Longest wait: `wait_bound`. With round robin, control VL aside: an input's choice is followed after at most P - 1
    other inputs, and can move to a VL that is nearer in turn at most `vls - 1` times, whenever one begins to ask: so
    an input that asks is accepted within `vls` (P - 1) + 1 cycles. A VL whose request stays lets each other VL of its
    input go first once, and each of them may come to be the choice that late: `vls` P + (`vls` - 1) (P - 1) cycles.
    """

    def elaborate(self, platform: object) -> Module:
        m = Module()
        firsts, grants, goes = self._first_choices(m)
        if self._vls > 1:
            asks, free_inputs, free_outputs = self._left(m, grants, goes)
            filled, *_ = self._sweep(m, asks, free_inputs, free_outputs)
            self._answer(m, firsts, grants, goes, filled)
            return m
        for i, first in enumerate(firsts):
            m.d.comb += [self.select[i].eq(first), self.accepted[i].eq(goes[i])]
        for p, grant in enumerate(grants):
            m.d.comb += self.grant[p].eq(grant)
        return m
