"""A fence on an AXI bus: it says when all transfers that were under way at a moment have ended."""

from __future__ import annotations

from amaranth import Module, Mux, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

__all__ = ["ID_BITS", "BusFence", "BusWatchSignature", "watch"]

ID_BITS = 2
"""Width of an ID on the card's bus (`axi.py`)."""
UNDER_WAY_BITS = 4
"""Width of the count of transfers under way with one ID and in one direction.

It counts to 15, far above the 4 bursts that an engine may have.
"""


class BusWatchSignature(wiring.Signature):
    """The handshakes of an AXI4 port, seen by who watches them.

    Members (all in): `awvalid awready awid`, `bvalid bready bid`, `arvalid arready arid`, `rvalid rready rlast rid`.
    """

    def __init__(self) -> None:
        flags = ("awvalid", "awready", "bvalid", "bready", "arvalid", "arready", "rvalid", "rready", "rlast")
        ids = ("awid", "bid", "arid", "rid")
        super().__init__(dict.fromkeys(flags, In(1)) | dict.fromkeys(ids, In(ID_BITS)))


def watch(m: Module, watched: wiring.PureInterface, axi: wiring.PureInterface) -> None:
    """Let the `BusWatchSignature` interface `watched` see the port `axi`."""
    m.d.comb += [getattr(watched, name).eq(getattr(axi, name)) for name in watched.signature.members]


class BusFence(wiring.Component):
    """Waits for the transfers that others have under way on a bus.

    Members:

    - `watched` (in, `BusWatchSignature`): the port whose transfers are waited for.
    - `mark` (in): from now on wait for every transfer whose address is on the bus in this cycle or was before.
    - `clear` (out): all of these have been answered, writes with their response, reads with their last beat. It is
      valid from the cycle after `mark`; before the first mark it is up.

    Answers with one ID come in the order of their addresses (ARM IHI 0022, A5.3), answers with different IDs in any. So
    the fence counts for every ID by itself. It does not wait for transfers that start after the mark. At most 15
    transfers of a direction may be under way with one ID.

    Latency: an answer in one cycle shows in the next. Throughput: a handshake of each channel a cycle. Reset:
    nothing is waited for, nothing under way.
    """

    def __init__(self) -> None:
        super().__init__({"watched": Out(BusWatchSignature()), "mark": In(1), "clear": Out(1)})

    def elaborate(self, platform: object) -> Module:
        m = Module()
        bus = self.watched
        waits = []
        for address, ends, answer_id in (
            ("aw", bus.bvalid & bus.bready, bus.bid),
            ("ar", bus.rvalid & bus.rready & bus.rlast, bus.rid),
        ):
            valid, ready, new_id = (getattr(bus, f"{address}{name}") for name in ("valid", "ready", "id"))
            # An address counts from the cycle in which it stands on the bus.
            seen = Signal(name=f"{address}_seen")
            m.d.sync += seen.eq(valid & ~ready)
            for i in range(1 << ID_BITS):
                under_way = Signal(UNDER_WAY_BITS, name=f"{address}_under_way_{i}")
                left = Signal(UNDER_WAY_BITS, name=f"{address}_left_{i}")
                now = Signal(UNDER_WAY_BITS, name=f"{address}_now_{i}")
                ended = Signal(name=f"{address}_ended_{i}")
                m.d.comb += [
                    ended.eq(ends & (answer_id == i)),
                    now.eq(under_way + (valid & ~seen & (new_id == i)) - ended),
                ]
                m.d.sync += [
                    under_way.eq(now),
                    left.eq(Mux(self.mark, now, left - (ended & (left != 0)))),
                ]
                waits.append(left != 0)
        waiting = waits[0]
        for wait in waits[1:]:
            waiting = waiting | wait
        m.d.comb += self.clear.eq(~waiting)
        return m
