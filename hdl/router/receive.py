"""Stage 1: synchronise, demultiplex to a VL buffer, decode (yum-2006 3.1)."""

from __future__ import annotations

from amaranth import Module, Signal
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out

from ..config import RouterConfig
from ..link import FlitLayout, LinkSignature
from .flit import BufferedFlitLayout, RouteLayout
from .vl_buffer import VlBuffer

__all__ = ["ReceiveStage"]


class ReceiveStage(wiring.Component):
    """Input of one port: a register on the link, the VL buffers, and the credits that go back.

    Members:

    - `rx` (in, `LinkSignature`): the link. A credit goes out in the cycle after its flit has left the buffer.
    - `arrived` (out): a flit stands in the link register.
    - `non_empty`, `read_select`, `read_vl`, `flit`, `pop`: the buffer's read side (`VlBuffer`).
    - `header_select` (in, `vls`), `header` (out, `RouteLayout`): the buffer's second reader, for stage 2.

    Latency: a flit on the link in cycle t is in the link register in t + 1 and in its buffer from t + 2 on.
    """

    def __init__(self, config: RouterConfig) -> None:
        self._config = config
        vls = config.link.vls
        super().__init__(
            {
                "rx": In(LinkSignature(config.link)),
                "arrived": Out(1),
                "non_empty": Out(vls),
                "read_select": In(vls),
                "read_vl": Out(config.link.vl_bits),
                "flit": Out(BufferedFlitLayout(config.link)),
                "pop": In(1),
                "header_select": In(vls),
                "header": Out(RouteLayout(config)),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        link = self._config.link
        layout, route = BufferedFlitLayout(link), RouteLayout(self._config)
        m.submodules.buffer = buffer = VlBuffer(
            shape=layout, vls=link.vls, depth=self._config.input_buffer_flits, peek=slice(0, route.size)
        )
        arrival: data.View = Signal(FlitLayout(link))
        m.d.sync += [arrival.eq(self.rx.payload), self.arrived.eq(self.rx.valid)]
        m.d.comb += [
            buffer.write_valid.eq(self.arrived),
            buffer.write_vl.eq(arrival.vl),
            buffer.write_data.data.eq(arrival.data),
            buffer.write_data.head.eq(arrival.head),
            buffer.write_data.tail.eq(arrival.tail),
            self.non_empty.eq(buffer.non_empty),
            buffer.read_select.eq(self.read_select),
            self.read_vl.eq(buffer.read_vl),
            self.flit.eq(buffer.read_data),
            buffer.pop.eq(self.pop),
            buffer.peek_select.eq(self.header_select),
            self.header.eq(buffer.peek_data),
        ]
        m.d.sync += [self.rx.credit_valid.eq(self.pop), self.rx.credit_vl.eq(buffer.read_vl)]
        return m
