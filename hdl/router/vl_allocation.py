"""Stage 3: arbitration for the output VL, for header flits only (yum-2006 3.1)."""

from __future__ import annotations

from amaranth import Module, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from ..config import RouterConfig
from .allocator import SeparableAllocator

__all__ = ["VlAllocationStage"]


class VlAllocationStage(wiring.Component):
    """Gives an output VL to one packet, from its head to its tail (wormhole). A packet keeps its VL number.

    Members (P ports; vectors of VLs are `vls` wide):

    - `want` (in, P x P): `want[i][p]`, VLs of input i that wait for the same VL of output p.
    - `taken` (out, P): VLs of input i that are given theirs in this cycle.
    - `holds` (out, P x P): `holds[i][p]`, VLs of input i that own that VL of output p. Registers.
    - `held` (out, P): VLs of input i that own an output VL anywhere.
    - `done` (in, P): VLs of input i whose tail crosses in this cycle: the output VL is free in the next.

    Latency: `want` in cycle t is `holds` in t + 1. One VL a cycle for each input and each output.

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
        m.submodules.allocator = allocator = SeparableAllocator(self._config)
        for p in ports:
            busy = Signal(vls, name=f"busy_{p}")
            for i in ports:
                m.d.comb += allocator.request[i][p].eq(self.want[i][p] & ~busy)
            owners = self.holds[0][p]
            for i in ports[1:]:
                owners = owners | self.holds[i][p]
            m.d.comb += busy.eq(owners)
        for i in ports:
            held = self.holds[i][0]
            for p in ports[1:]:
                held = held | self.holds[i][p]
            m.d.comb += self.held[i].eq(held)
            with m.If(allocator.accepted[i]):
                m.d.comb += self.taken[i].eq(allocator.select[i])
            for p in ports:
                given = Signal(vls, name=f"given_{i}_{p}")
                with m.If(allocator.grant[p][i]):
                    m.d.comb += given.eq(allocator.select[i])
                m.d.sync += self.holds[i][p].eq((self.holds[i][p] & ~self.done[i]) | given)
        return m
