"""Stage 3 with multicast: a packet is given output VLs at one or more of its ports, one pass after another."""

from __future__ import annotations

from functools import reduce
from operator import or_

from amaranth import Module, Signal, Value
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from ...arbiter.lane_round_robin import LaneRoundRobin
from ...config import RouterConfig
from ...working import works_when

__all__ = ["MulticastAllocationStage"]


class MulticastAllocationStage(wiring.Component):
    """Gives output VLs to a packet, each from its head to its tail. A packet keeps its VL number.

    A packet may want several ports. It crosses in *passes*. In each it is read from head to tail, and goes to the ports
    of that pass at once. The first of the ports that are left is its *lead*:

    - While the lead is taken, the packet asks for those of its other ports that are free and *empty*. No packet owns
      such an output VL, and no flit is in its buffer.
    - When the lead is free and empty it asks for that as well.
    - When the lead is free and not empty it asks for the lead alone.

    What it is given in a cycle is a pass. So a pass has one port, or several ports with room for the whole packet
    (`RouterConfig.multicast_flits`). No port of a pass ever waits for the room of another one.

    Members (P ports; vectors of VLs are `vls` wide):

    - `want` (in, P x P): `want[i][p]`, VLs of input i whose packet is still to go to port p.
    - `taken` (out, P x P): those that are given that output VL in this cycle.
    - `holds` (out, P x P): `holds[i][p]`, VLs of input i that own that VL of output p; registers.
    - `held` (out, P): VLs of input i that own an output VL anywhere: they are in a pass.
    - `again` (out, P): VLs of input i in a pass that is not the packet's last one.
    - `occupied` (in, P): VLs of output p with a flit in the buffer.
    - `done` (in, P): VLs of input i whose tail has gone to all ports of the pass in this cycle.

    Turns are those of `LaneRoundRobin`. A packet asks for its lead whenever that is free. So between two passes it
    waits for at most one packet of each other input, and it has at most as many passes as ports.

    Latency: `want` in cycle t is `holds` in t + 1; a cycle is free between two passes. Throughput: every free output
    VL in a cycle.
    """

    def __init__(self, config: RouterConfig) -> None:
        self._config = config
        vls, ports = config.link.vls, config.ports
        super().__init__(
            {
                "want": In(vls).array(ports, ports),
                "taken": Out(vls).array(ports, ports),
                "holds": Out(vls).array(ports, ports),
                "held": Out(vls).array(ports),
                "again": Out(vls).array(ports),
                "occupied": In(vls).array(ports),
                "done": In(vls).array(ports),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        vls, ports = self._config.link.vls, range(self._config.ports)
        m.submodules.owners = owners = Module()
        works_when(owners, *self.done, *(wants for row in self.want for wants in row))
        busy = [Signal(vls, name=f"busy_{p}") for p in ports]
        for p in ports:
            owners.d.comb += busy[p].eq(reduce(or_, [self.holds[i][p] for i in ports]))
        asks = [self._asks(owners, i, busy) for i in ports]
        for p in ports:
            turns = LaneRoundRobin(size=self._config.ports, lanes=vls)
            owners.submodules[f"turns_{p}"] = turns
            for i in ports:
                owners.d.comb += [turns.requests[i].eq(asks[i][p]), self.taken[i][p].eq(turns.grant[i])]
                owners.d.sync += self.holds[i][p].eq((self.holds[i][p] & ~self.done[i]) | turns.grant[i])
        for i in ports:
            m.d.comb += [
                self.held[i].eq(reduce(or_, list(self.holds[i]))),
                self.again[i].eq(self.held[i] & reduce(or_, list(self.want[i]))),
            ]
        return m

    def _asks(self, m: Module, i: int, busy: list[Signal]) -> list[Value]:
        """For each output the VLs of input i that ask for it."""
        vls, ports = self._config.link.vls, range(self._config.ports)
        wants = [Signal(vls, name=f"wants_{i}_{p}") for p in ports]
        alone = Signal(vls, name=f"alone_{i}")
        leads: list[Value] = []
        before: Value = Signal(vls, name=f"before_{i}_0")
        for p in ports:
            after = Signal(vls, name=f"before_{i}_{p + 1}")
            m.d.comb += [wants[p].eq(self.want[i][p] & ~self.held[i]), after.eq(before | wants[p])]
            leads.append(wants[p] & ~before & ~busy[p])
            before = after
        m.d.comb += alone.eq(
            reduce(or_, (lead & full for lead, full in zip(leads, self.occupied, strict=True)))
        )
        return [leads[p] | (wants[p] & ~busy[p] & ~self.occupied[p] & ~alone) for p in ports]
