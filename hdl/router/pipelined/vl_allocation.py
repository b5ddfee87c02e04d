"""Stage 3 of the pipelined router: output VLs are given to packets, from head to tail."""

from __future__ import annotations

from functools import reduce
from operator import or_

from amaranth import Module, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from ...arbiter.lane_round_robin import LaneRoundRobin
from ...config import RouterConfig

__all__ = ["PipelinedVlAllocation"]


class PipelinedVlAllocation(wiring.Component):
    """Gives a free output VL in turn, packet by packet, to the inputs that wait for it (`LaneRoundRobin`).

    Members (P ports; vectors of VLs are `vls` wide):

    - `want` (in, P x P): `want[i][p]`, VLs of input i that wait for the same VL of output p.
    - `hopes` (out, P): VLs of input i that wait for one that is free.
    - `taken` (out, P): those of them that are given theirs in this cycle.
    - `released` (in, P): VLs of output p whose tail goes in this cycle.
    - `busy` (out, P): VLs of output p that are given; registers. The inputs know to whom.

    Latency: a VL that is released in cycle t is given again in t + 1 at the earliest. Throughput: every free output VL
    in a cycle. Longest wait: one packet of each other input.
    """

    def __init__(self, config: RouterConfig) -> None:
        self._config = config
        vls, ports = config.link.vls, config.ports
        super().__init__(
            {
                "want": In(vls).array(ports, ports),
                "hopes": Out(vls).array(ports),
                "taken": Out(vls).array(ports),
                "released": In(vls).array(ports),
                "busy": Out(vls).array(ports),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        vls, ports = self._config.link.vls, range(self._config.ports)
        given, asked = [], []
        for p in ports:
            m.submodules[f"turns_{p}"] = turns = LaneRoundRobin(size=self._config.ports, lanes=vls)
            m.d.comb += [turns.requests[i].eq(self.want[i][p] & ~self.busy[p]) for i in ports]
            taken = Signal(vls, name=f"taken_{p}")
            m.d.comb += taken.eq(reduce(or_, list(turns.grant)))
            m.d.sync += self.busy[p].eq((self.busy[p] & ~self.released[p]) | taken)
            given.append(turns.grant)
            asked.append(turns.requests)
        m.d.comb += [self.hopes[i].eq(reduce(or_, (requests[i] for requests in asked))) for i in ports]
        m.d.comb += [self.taken[i].eq(reduce(or_, (grant[i] for grant in given))) for i in ports]
        return m
