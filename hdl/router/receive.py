"""Stage 1: synchronise, demultiplex to a VL buffer, decode (yum-2006 3.1)."""

from __future__ import annotations

from amaranth import Module, Signal, Value
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out

from ..config import RouterConfig
from ..link import FlitLayout, LinkSignature
from ..link_guard import GUARD_BITS
from ..link_restart import receive_register
from ..working import works_when
from .flit import BufferedFlitLayout, RouteLayout
from .scheduler import looks_ahead
from .vl_buffer import VlBuffer

__all__ = ["ReceiveStage"]


class ReceiveStage(wiring.Component):
    """Input of one port: a register on the link, the VL buffers, and the credits that go back.

    Members:

    - `rx` (in, `LinkSignature`): the link. A credit goes out in the cycle after its flit has left the buffer.
    - `arrived` (out): a flit stands in the link register.
    - `non_empty`, `read_select`, `read_vl`, `flit`, `pop`: the buffer's read side (`VlBuffer`).
    - `header_select` (in, `vls`): the VL whose header stage 2 sees.
    - `header` (out, `RouteLayout`): that header. It is at the front of the VL's buffer, or with
      `looks_ahead` the oldest one that was not yet taken.
    - `restarting` (out), only with `LinkConfig.restart`: the link does not work yet, as an end was reset.
    - `begun_anew` (out, `GUARD_BITS`), only with `LinkConfig.guard_cycles`: that of `ReceiveRestart`.
    - `refused` (out, `GUARD_BITS`), only with `LinkConfig.guard_cycles`: flits that were thrown away as they came since
      reset, modulo 2^16. There was no room for them, or the link was down.
    - `full` (out, `vls`), only with `RouterConfig.status_outputs`: VLs whose buffer is full.
    - `again` (in, `vls`), only with `RouterConfig.multicast_nodes`: VLs whose packet is to be read once more. Its flits
      stay, and no credit goes out for them. Behind its tail its head is read again.
    - `headers` (out), only with `looks_ahead`: VLs that have a header which was not yet taken.
    - `header_take` (in), only with `looks_ahead`: the header that is seen is taken.

    Latency: a flit on the link in cycle t is in the link register in t + 1 and in its buffer from t + 2 on.
    Throughput: a flit a cycle.

    Without look-ahead the header is read at the front of the buffer, by a second reader. With look-ahead that reader
    and its copy of the bits are left out. First flits of packets go into a queue of their own as well. The queue is as
    wide as the bits that stage 2 looks at (`RouteLayout`), and as deep as the buffer, so that it never fills up.
    """

    def __init__(self, config: RouterConfig) -> None:
        self._config = config
        vls = config.link.vls
        more = {"restarting": Out(1)} if config.link.restart else {}
        if config.link.guard_cycles:
            more |= {"begun_anew": Out(GUARD_BITS), "refused": Out(GUARD_BITS)}
        ahead = {"headers": Out(vls), "header_take": In(1)} if looks_ahead(config) else {}
        if config.status_outputs:
            more |= {"full": Out(vls)}
        if config.multicast_nodes:
            more |= {"again": In(vls)}
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
            | ahead
            | more
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        link, depth = self._config.link, self._config.input_buffer_flits
        layout, route = BufferedFlitLayout(link), RouteLayout(self._config)
        ahead = looks_ahead(self._config)
        memory = self._config.buffer_memory
        m.submodules.queues = queues = Module()
        queues.submodules.buffer = buffer = VlBuffer(
            shape=layout,
            vls=link.vls,
            depth=depth,
            peek=None if ahead else slice(0, route.size),
            memory=memory,
            rewinds=self._config.multicast_nodes > 0,
        )
        arrival: data.View = Signal(FlitLayout(link))
        if buffer.rests:
            works_when(queues, self.arrived, self.header_select, self.read_select)
        half = receive_register(m, link, self.rx, self.arrived, arrival, buffer)
        if half is not None:
            m.d.comb += self.restarting.eq(half.busy)
            if link.guard_cycles:
                refused = m.submodules.guard_in.refused
                m.d.comb += [
                    self.begun_anew.eq(half.begun_anew),
                    self.refused.eq((refused + half.lost)[:GUARD_BITS]),
                ]
        m.d.comb += self.non_empty.eq(buffer.non_empty)
        if self._config.status_outputs:
            m.d.comb += self.full.eq(buffer.full)
        queues.d.comb += [
            buffer.write_valid.eq(self.arrived),
            buffer.write_vl.eq(arrival.vl),
            buffer.write_data.data.eq(arrival.data),
            buffer.write_data.head.eq(arrival.head),
            buffer.write_data.tail.eq(arrival.tail),
            buffer.read_select.eq(self.read_select),
            self.read_vl.eq(buffer.read_vl),
            self.flit.eq(buffer.read_data),
            buffer.pop.eq(self.pop),
        ]
        if ahead:
            queues.submodules.headers = headers = VlBuffer(
                shape=route, vls=link.vls, depth=depth, memory=memory
            )
            # VLs whose next flit is the first of a packet, a head or not. Stage 2 throws away a packet without a head.
            between = Signal(link.vls, init=(1 << link.vls) - 1)
            with queues.If(self.arrived):
                queues.d.sync += between.bit_select(arrival.vl, 1).eq(arrival.tail)
            m.d.comb += self.headers.eq(headers.non_empty)
            queues.d.comb += [
                headers.write_valid.eq(self.arrived & between.bit_select(arrival.vl, 1)),
                headers.write_vl.eq(arrival.vl),
                headers.write_data.eq(Value.cast(buffer.write_data)[: route.size]),
                headers.read_select.eq(self.header_select),
                self.header.eq(headers.read_data),
                headers.pop.eq(self.header_take),
            ]
        else:
            queues.d.comb += [buffer.peek_select.eq(self.header_select), self.header.eq(buffer.peek_data)]
        frees: Value = self.pop
        if self._config.multicast_nodes:
            again = Signal()
            queues.d.comb += [
                again.eq((self.read_select & self.again).any()),
                buffer.mark.eq(buffer.read_data.head),
                buffer.rewind.eq(again & buffer.read_data.tail),
            ]
            frees = self.pop & ~again
        m.d.sync += [self.rx.credit_valid.eq(frees), self.rx.credit_vl.eq(buffer.read_vl)]
        return m
