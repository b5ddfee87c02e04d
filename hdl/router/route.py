"""Stage 2: the routing decision, for header flits only (yum-2006 3.1)."""

from __future__ import annotations

from functools import reduce
from operator import or_

from amaranth import Module, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from ..arbiter import arbiter_class
from ..config import RouterConfig
from .flit import RouteLayout

__all__ = ["RouteStage"]


class RouteStage(wiring.Component):
    """Route registers of one input: for each VL, where the packet at the front of its buffer wants to go.

    Source routing: the output port is the low `hop_bits` of the header's route. A packet whose port does not
    exist or is not connected, or which does not begin with a head flit, is marked to be dropped whole.

    Members (vectors of VLs are `vls` wide):

    - `connected` (in, P): ports that lead somewhere.
    - `non_empty` (in): VLs with a flit in the buffer. `held` (in): VLs whose packet has its output VL.
    - `header_select` (out), `header` (in, `RouteLayout`): reads the front of one VL's buffer, in the same
      cycle.
    - `want` (out, P): `want[p]`, VLs that wait for their output VL at port p. Registers.
    - `taken` (in): VLs that are given their output VL in this cycle; they stop waiting.
    - `drop` (out): VLs whose packet is thrown away. A register. `done` (in): VLs whose tail leaves the
      buffer.

    Latency: a header at the front of its buffer in cycle t is in `want` or `drop` in t + 1; one VL a cycle.
    """

    def __init__(self, config: RouterConfig) -> None:
        self._config = config
        vls, ports = config.link.vls, config.ports
        super().__init__(
            {
                "connected": In(ports),
                "non_empty": In(vls),
                "held": In(vls),
                "header_select": Out(vls),
                "header": In(RouteLayout(config.link)),
                "want": Out(vls).array(ports),
                "taken": In(vls),
                "drop": Out(vls),
                "done": In(vls),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        vls, ports = self._config.link.vls, self._config.ports
        m.submodules.arbiter = arbiter = arbiter_class(self._config.arbiter)(size=vls)
        routed = Signal(vls)
        m.d.comb += [
            routed.eq(reduce(or_, self.want) | self.held | self.drop),
            arbiter.requests.eq(self.non_empty & ~routed),
            arbiter.advance.eq(1),
            self.header_select.eq(arbiter.grant),
        ]
        port, known = Signal(ports), Signal()
        with m.Switch(self.header.hop):
            for p in range(ports):
                with m.Case(p):
                    m.d.comb += port[p].eq(self.connected[p] & self.header.head)
        m.d.comb += known.eq(port.any())
        for p in range(ports):
            found = Signal(vls, name=f"found_{p}")
            with m.If(port[p]):
                m.d.comb += found.eq(arbiter.grant)
            m.d.sync += self.want[p].eq((self.want[p] & ~self.taken) | found)
        lost = Signal(vls)
        with m.If(~known):
            m.d.comb += lost.eq(arbiter.grant)
        m.d.sync += self.drop.eq((self.drop & ~self.done) | lost)
        return m
