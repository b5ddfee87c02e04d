"""Stage 3: arbitration for the output VL, for header flits only (yum-2006 3.1)."""

from __future__ import annotations

from functools import reduce
from operator import or_

from amaranth import Module, Signal, Value
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from ..arbiter.lane_round_robin import LaneRoundRobin
from ..config import RouterConfig

__all__ = ["VlAllocationStage"]


class VlAllocationStage(wiring.Component):
    """Gives an output VL to one packet, from its head to its tail (wormhole). A packet keeps its VL number.

    Members (P ports; vectors of VLs are `vls` wide):

    - `want` (in, P x P): `want[i][p]`, VLs of input i that wait for the same VL of output p.
    - `taken` (out, P): VLs of input i that are given theirs in this cycle.
    - `holds` (out, P x P): `holds[i][p]`, VLs of input i that own that VL of output p. Registers.
    - `held` (out, P): VLs of input i that own an output VL anywhere.
    - `done` (in, P): VLs of input i whose tail crosses in this cycle: the output VL is free in the next.

    An output VL that is free goes to the inputs that wait for it in turn, packet by packet (`LaneRoundRobin`,
    whatever `RouterConfig.arbiter` says, which schedules flits): a packet waits for at most one packet of
    each other input. All output VLs are given in parallel.

    Latency: `want` in cycle t is `holds` in t + 1.

    Who owns what is kept once, in `holds`; that an output VL is busy is derived from it. So a release and a
    new grant can meet in any cycle, and neither can be lost.
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
        for p in ports:
            m.submodules[f"turns_{p}"] = turns = LaneRoundRobin(size=self._config.ports, lanes=vls)
            busy = Signal(vls, name=f"busy_{p}")
            m.d.comb += busy.eq(reduce(or_, [self.holds[i][p] for i in ports]))
            for i in ports:
                m.d.comb += turns.requests[i].eq(self.want[i][p] & ~busy)
                m.d.sync += self.holds[i][p].eq((self.holds[i][p] & ~self.done[i]) | turns.grant[i])
                given[i].append(turns.grant[i])
        for i in ports:
            m.d.comb += [
                self.taken[i].eq(reduce(or_, given[i])),
                self.held[i].eq(reduce(or_, list(self.holds[i]))),
            ]
        return m
