"""iSLIP: outputs grant, inputs accept, in rounds; then the matched input picks a VL for its output."""

from __future__ import annotations

from functools import reduce
from operator import or_

from amaranth import Cat, Module, Mux, Signal, Value

from ...vl_arbiter.base import rotating_pick
from .allocator import Allocator

__all__ = ["IslipAllocator"]


class IslipAllocator(Allocator):
    """iSLIP on inputs and outputs, whatever the VLs, with `RouterConfig.allocator_iterations` iterations.

    Source: McKeown, IEEE/ACM Trans. Networking 7(2), 1999. After the iterations each input picks, in turn, among the
    VLs that ask for the output that it was given. For this every input has turns of its own for each output. With one
    turn for all outputs a VL could be passed by for ever, since VLs of other outputs would move the turn.

    In an iteration every free output grants to one of the free inputs that ask for it. Then every input accepts one of
    the grants. Both choose in turn. The turns move on, to the number after the partner's, only by matches of the first
    iteration. That lets them drift apart, so that they seldom meet, and it bounds the wait. Inputs that ask with the
    control VL go first at an output, and grants to the control VL go first at an input; both take no turn. Flits to be
    thrown away have an output of their own at every input, which always grants.

    Every iteration adds to the matching until it is maximal, which it is after P at the latest. With fewer iterations a
    sweep (`Allocator._sweep`) matches the inputs and outputs that they leave, which takes no turn. With one VL the
    first iteration leaves nothing.

    Where outputs choose by VL (any `vl_arbiter` but round robin), the separable allocator's choices come first, by the
    VL arbiters. The iterations match the inputs and outputs that these leave, as the separable allocator's sweep does.
    A flit that goes beyond the choices is not charged in the tables. Bounds are then those of the separable allocator.

    Longest wait: `wait_bound`. With round robin, control VL aside, it is made of these parts for an input that asks an
    output without a break:

    - An output that grants to an input does so until the input accepts, which takes it at most P + 1 matches. Then the
      others come first: P (P + 1) cycles.
    - Each of the P - 1 others may begin to ask when the one before has nearly been accepted. That costs the one before
      its P cycles: 2 P^2 cycles in all.
    - At most `vls - 1` VLs of the input that ask for the output go first. So a VL whose request stays waits at most
      2 P^2 `vls` cycles.
    """

    @staticmethod
    def turns_bound(*, ports: int, vls: int) -> int:
        """The bound of `Allocator.turns_bound`; the docstring of the class has the reason."""
        return 2 * ports * ports * vls

    def elaborate(self, platform: object) -> Module:
        m = Module()
        size, ports, control_vl = self._ports, range(self._ports), self._config.control_vl
        lanes = self._vls
        firsts, grants, goes = self._first_choices(m) if self._by_vl else ([], [], [])
        asks = [Cat(*(self.request[i][p].any() for i in ports)) for p in ports]
        control = None
        if control_vl is not None:
            control = [Cat(*(self.request[i][p][control_vl] for i in ports)) for p in ports]

        # Bits above the last partner, of each output among the inputs, of each input among the outputs. The last bit
        # of an input is the output for flits that are thrown away.
        after_output = [Signal(size, name=f"after_output_{p}") for p in ports]
        after_input = [Signal(size + 1, name=f"after_input_{i}") for i in ports]
        free_inputs: Value = Signal(size, init=(1 << size) - 1, name="all_inputs")
        if self._by_vl:
            m.d.comb += free_inputs.eq(~Cat(*goes))
            asks = [Mux(grants[p].any(), 0, asks[p]) for p in ports]
        else:
            m.d.comb += free_inputs.eq((1 << size) - 1)
        matched: list[list[Value]] = [[] for _ in ports]  # [input][iteration], one-hot outputs
        for turn in range(self._config.allocator_iterations):
            outputs = []
            for p in ports:
                asking, granted = (Signal(size, name=f"{n}_{turn}_{p}") for n in ("asking", "granted"))
                taken: Value = (
                    Cat(*(reduce(or_, matched[i])[p] for i in ports)).any() if turn else Value.cast(0)
                )
                m.d.comb += asking.eq(Mux(taken, 0, asks[p] & free_inputs))
                chosen: Value = asking
                if control is not None:
                    urgent = Signal(size, name=f"urgent_{turn}_{p}")
                    m.d.comb += urgent.eq(asking & control[p])
                    chosen = Mux(urgent.any(), urgent, asking)
                m.d.comb += granted.eq(rotating_pick(m, chosen, after_output[p], f"grant_{turn}_{p}"))
                outputs.append(granted)
            for i in ports:
                offered = Signal(size + 1, name=f"offered_{turn}_{i}")
                accepted = Signal(size + 1, name=f"accepted_{turn}_{i}")
                throws = Value.cast(0)[0:1] if self._by_vl else free_inputs[i] & self.alone[i].any()
                m.d.comb += offered.eq(
                    Cat(
                        *(outputs[p][i] for p in ports),
                        throws,
                    )
                )
                best: Value = offered
                if control is not None:
                    urgent = Signal(size + 1, name=f"urgent_offer_{turn}_{i}")
                    m.d.comb += urgent.eq(offered & Cat(*(control[p][i] for p in ports)))
                    best = Mux(urgent.any(), urgent, offered)
                m.d.comb += accepted.eq(rotating_pick(m, best, after_input[i], f"accept_{turn}_{i}"))
                matched[i].append(accepted)
                if turn == 0:
                    takes_turn: Value = accepted.any()
                    if control is not None:
                        takes_turn = takes_turn & ~urgent.any()
                    # -(2 * x) has all bits above that of x; after the last one, none.
                    with m.If(takes_turn):
                        m.d.sync += after_input[i].eq(~(accepted << 1) + 1)
                        for p in ports:
                            with m.If(accepted[p]):
                                m.d.sync += after_output[p].eq(~(outputs[p] << 1) + 1)
            rest = Signal(size, name=f"free_inputs_{turn}")
            m.d.comb += rest.eq(free_inputs & ~Cat(*(matched[i][turn].any() for i in ports)))
            free_inputs = rest

        # With one VL an input asks one output, and the first iteration is enough.
        if self._config.allocator_iterations < size and lanes > 1:
            free_outputs = Signal(size)
            m.d.comb += free_outputs.eq(
                ~Cat(*(Cat(reduce(or_, matched[i])[p] for i in ports).any() for p in ports))
            )
            swept, *_ = self._sweep(
                m, [Cat(asks[p][i] for p in ports) for i in ports], free_inputs, free_outputs
            )
            for row, mine in zip(swept, matched, strict=True):
                mine.append(row)
        if self._by_vl:
            filled = []
            for i in ports:
                row = Signal(size, name=f"filled_{i}")
                m.d.comb += row.eq(reduce(or_, matched[i])[:size])
                filled.append(row)
            self._answer(m, firsts, grants, goes, filled)
            return m
        data_vls = (1 << lanes) - 1
        if control_vl is not None:
            data_vls &= ~(1 << control_vl)
        for i in ports:
            match, asking = Signal(size + 1, name=f"match_{i}"), Signal(lanes, name=f"vls_asking_{i}")
            # Bits above the VL that went last, for each output: turns of VLs for one output do not pass by those
            # for another.
            after_vl = [Signal(lanes, name=f"after_vl_{i}_{p}") for p in range(size + 1)]
            wants = [*self.request[i], self.alone[i]]
            m.d.comb += [
                match.eq(reduce(or_, matched[i])),
                asking.eq(reduce(or_, (Mux(match[p], want, 0) for p, want in enumerate(wants)))),
            ]
            turn_of = reduce(or_, (Mux(match[p], after, 0) for p, after in enumerate(after_vl)))
            pick = rotating_pick(m, asking & data_vls, turn_of, f"vl_{i}")
            select: Value = pick
            if control_vl is not None:
                select = Mux(asking[control_vl], 1 << control_vl, pick)
            with m.If(select[:lanes] == pick):
                for p, after in enumerate(after_vl):
                    with m.If(match[p]):
                        m.d.sync += after.eq(~(pick << 1) + 1)
            m.d.comb += [
                self.select[i].eq(select),
                self.accepted[i].eq(match.any()),
                *(self.grant[p][i].eq(match[p]) for p in ports),
            ]
        return m
