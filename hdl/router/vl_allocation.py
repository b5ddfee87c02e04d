"""Stage 3: arbitration for the output VL, for header flits only (yum-2006 3.1)."""

from __future__ import annotations

from functools import reduce
from operator import or_

from amaranth import Module, Signal, Value
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from ..arbiter.lane_round_robin import LaneRoundRobin
from ..config import RouterConfig
from ..working import works_when
from .scheduler import looks_ahead

__all__ = ["VlAllocationStage"]


class VlAllocationStage(wiring.Component):
    """Gives an output VL to one packet, from its head to its tail (wormhole). A packet keeps its VL number.

    Members (P ports; vectors of VLs are `vls` wide):

    - `want` (in, P x P): `want[i][p]`, VLs of input i that wait for the same VL of output p.
    - `taken` (out, P): VLs of input i that are given theirs in this cycle.
    - `holds` (out, P x P): `holds[i][p]`, VLs of input i that own that VL of output p; registers.
    - `held` (out, P): VLs of input i that own an output VL anywhere.
    - `done` (in, P): VLs of input i whose tail crosses in this cycle. The output VL is free in the next cycle; with
      `looks_ahead` it already has its next owner then.

    An output VL that is free goes in turn, packet by packet, to the inputs that wait for it. So a packet waits for at
    most one packet of each other input. The turns are those of `LaneRoundRobin`, whatever `RouterConfig.arbiter` says,
    which schedules flits. All output VLs are given in parallel.

    Latency: `want` in cycle t is `holds` in t + 1. Throughput: every free output VL in a cycle.

    With look-ahead a VL may want an output VL for its next packet while it owns one. It takes part in the choice once
    its header is at the front of its buffer. It also does if it wants the same output VL that it owns. So no packet
    ever owns an output VL that the packet before it could keep it from using, and look-ahead adds no new waiting of one
    packet for another. The next turn is worked out at any time. It comes to pass when the output VL is free or its
    tail crosses: the late `done` opens it, and does not pass the choice.

    The owners are kept once, in `holds`; that an output VL is busy is derived from them. So a release and a new grant
    can meet in any cycle, and neither can be lost.
    """

    def __init__(self, config: RouterConfig) -> None:
        self._config = config
        vls, ports = config.link.vls, config.ports
        super().__init__(
            {
                "want": In(vls).array(ports, ports),
                "taken": Out(vls).array(ports),
                "holds": Out(vls).array(ports, ports),
                "held": Out(vls).array(ports),
                "done": In(vls).array(ports),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        vls, ports = self._config.link.vls, range(self._config.ports)
        given: list[list[Value]] = [[] for _ in ports]
        # The owners change rarely: when a header waits for its output VL, or a tail crosses.
        m.submodules.owners = owners = Module()
        works_when(owners, *self.done, *(vls for wants in self.want for vls in wants))
        for p in ports:
            ahead = looks_ahead(self._config)
            turns = LaneRoundRobin(size=self._config.ports, lanes=vls, gated=ahead)
            owners.submodules[f"turns_{p}"] = turns
            busy = Signal(vls, name=f"busy_{p}")
            owners.d.comb += busy.eq(reduce(or_, [self.holds[i][p] for i in ports]))
            if ahead:
                owners.d.comb += turns.open.eq(
                    ~busy | reduce(or_, [self.holds[i][p] & self.done[i] for i in ports])
                )
            for i in ports:
                asks = self.want[i][p] & ~busy
                if ahead:
                    asks = self.want[i][p] & (~self.held[i] | self.holds[i][p])
                owners.d.comb += turns.requests[i].eq(asks)
                owners.d.sync += self.holds[i][p].eq((self.holds[i][p] & ~self.done[i]) | turns.grant[i])
                given[i].append(turns.grant[i])
        for i in ports:
            owners.d.comb += self.taken[i].eq(reduce(or_, given[i]))
            m.d.comb += self.held[i].eq(reduce(or_, list(self.holds[i])))
        return m
