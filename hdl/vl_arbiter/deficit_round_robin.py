"""Deficit round robin among virtual lanes, charged in flits."""

from __future__ import annotations

from amaranth import Cat, Module, Mux, Signal, unsigned
from amaranth.lib import memory

from .base import WEIGHT_BITS, VlArbiter, rotating_pick

__all__ = ["DeficitRoundRobinVlArbiter"]


class DeficitRoundRobinVlArbiter(VlArbiter):
    """Each VL has a quantum of flits a turn; turns end with a packet, and a VL owes the flits beyond its quantum.

    The length of a packet is not known when it begins (wormhole). So it is charged flit by flit, and not compared with
    the quantum beforehand. A VL goes on, packet after packet, while its quantum lasts. It finishes the packet that is
    under way when the quantum ends, and begins its next turn with so much less.

    So over many turns VLs that keep asking share the link in proportion to their quanta, whatever the lengths of their
    packets. This holds if no quantum is smaller than the longest packet. With a smaller one a VL could owe a whole turn
    or more. All of such a debt but the quantum less one is forgiven, so that every turn sends something.

    A VL that stops asking ends its turn: an unused rest is lost, a debt stays. It finishes its packet in its next turn.

    Quanta are written through `table`, which is always `ready`, and act from the VL's next turn on:

    - `vl`, `weight`: a VL and its quantum. A row of weight 0 is not used and changes nothing.
    - `high`, `entry`, `limit` and `commit` mean nothing here.

    Reset: every quantum is 1.

    Memory: quantum and debt of each VL in small memories, one counter, and two bits a VL. Longest wait: `wait_bound`.
    """

    has_tables = sparse_tables = whole_packets = True

    @staticmethod
    def wait_bound(vl: int, *, quanta: list[int], packet_flits: int) -> int:
        """The most flits of others between two flits of a VL that keeps asking: a turn of each of them.

        `quanta`: those of all data VLs. `packet_flits`: the longest packet. A turn is at most the quantum and the rest
        of a packet that was begun with the quantum's last flit.
        """
        return sum(max(quantum, 1) + packet_flits - 1 for v, quantum in enumerate(quanta) if v != vl)

    def pick(self, m: Module, requests: Signal, tails: Signal, grant: Signal, advance: Signal) -> None:
        vls = self.vls
        bits = max(1, (vls - 1).bit_length())
        m.submodules.quanta = quanta = memory.Memory(shape=unsigned(WEIGHT_BITS), depth=1 << bits, init=[])
        m.submodules.debts = debts = memory.Memory(shape=unsigned(WEIGHT_BITS), depth=1 << bits, init=[])
        set_quantum, quantum_read = quanta.write_port(), quanta.read_port(domain="comb")
        set_debt, debt_read = debts.write_port(), debts.read_port(domain="comb")
        written, owing = Signal(vls), Signal(vls)  # a memory has no reset: which rows mean anything
        writes = self.table.write & self.table.weight.any()
        m.d.comb += [
            self.table.ready.eq(1),
            set_quantum.en.eq(writes),
            set_quantum.addr.eq(self.table.vl),
            set_quantum.data.eq(self.table.weight),
        ]
        with m.If(writes):
            m.d.sync += written.eq(written | 1 << self.table.vl)

        # The turn: `holder` has it while it asks. `left` flits may still be sent in it; `owes` flits were taken beyond.
        holder, mask = Signal(vls), Signal(vls)
        left = Signal(WEIGHT_BITS)  # flits left of the turn, 0 if it owes
        owes = Signal(WEIGHT_BITS)  # flits taken beyond it
        goes_on = Signal()
        m.d.comb += [
            goes_on.eq((holder & requests).any()),
            grant.eq(rotating_pick(m, requests, Mux(goes_on, holder, mask))),
        ]

        vl = Cat(*(Cat(*(grant[i] for i in range(vls) if i >> bit & 1)).any() for bit in range(bits)))
        quantum, debt, limit = Signal(WEIGHT_BITS), Signal(WEIGHT_BITS), Signal(WEIGHT_BITS)
        allowed, taken = Signal(WEIGHT_BITS), Signal(WEIGHT_BITS)
        m.d.comb += [
            quantum_read.addr.eq(vl),
            debt_read.addr.eq(vl),
            quantum.eq(Mux((written & grant).any(), quantum_read.data, 1)),
            limit.eq(quantum - 1),
            debt.eq(Mux((owing & grant).any(), Mux(debt_read.data < limit, debt_read.data, limit), 0)),
            allowed.eq(Mux(goes_on, left, quantum - debt)),
            taken.eq(Mux(goes_on, owes, 0)),
        ]
        ends = Signal()
        after_left, after_owes = Signal(WEIGHT_BITS), Signal(WEIGHT_BITS)
        m.d.comb += [
            after_left.eq(Mux(allowed.any(), allowed - 1, 0)),
            after_owes.eq(Mux(allowed.any() | taken.all(), taken, taken + 1)),
            ends.eq((grant & tails).any() & ~after_left.any()),
        ]
        with m.If(advance & requests.any()):
            m.d.sync += [
                holder.eq(Mux(ends, 0, grant)),
                mask.eq(~(grant << 1) + 1),
                left.eq(after_left),
                owes.eq(after_owes),
            ]
            # The debt is kept up to date with each flit, so that a turn may end in any way.
            m.d.comb += [set_debt.en.eq(1), set_debt.addr.eq(vl), set_debt.data.eq(after_owes)]
            m.d.sync += owing.eq(owing | grant)
        with m.If(~goes_on & ~(advance & requests.any())):
            m.d.sync += holder.eq(0)
