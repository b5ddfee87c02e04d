"""The management port: whole control packets between the network and the router's agent."""

from __future__ import annotations

from amaranth import Module, Mux, Signal, unsigned
from amaranth.lib import memory, wiring
from amaranth.lib.wiring import In, Out

from ..config import RouterConfig
from ..link import LinkSignature
from .credits import Credits
from .flit import BufferedFlitLayout
from .vl_buffer import VlBuffer

__all__ = ["MANAGEMENT_BUFFER_FLITS", "ManagementPort"]

MANAGEMENT_BUFFER_FLITS = 4
"""Depth of the port's buffer, for which the router's output port 0 has credits: enough for the full rate."""


class ManagementPort(wiring.Component):
    """The far end of port 0's link: a memory for a received packet, and one for a packet to be sent.

    All flits have the control VL: the router lets no other packet go to port 0.

    Members:

    - `tx` (out, `LinkSignature`), `rx` (in, `LinkSignature`): the links to and from the router.
    - `word` (in): number of a 32-bit word of a memory.
    - `read_data` (out, 32): that word of the receive memory, in the same cycle.
    - `write` (in), `write_data` (in, 32): that word of the send memory is written.
    - `valid` (out): a whole packet is in the receive memory.
    - `flits` (out, 16): its length; 65535 stands for that or more.
    - `free` (in): it has been read.
    - `start` (in), `start_flits` (in, 16): the first flits of the send memory are sent as a packet. Nothing happens
      while `busy`, with 0 flits, or with more than the memory holds.
    - `busy` (out): a packet is being sent.
    - `moved` (out): a flit is taken or sent in this cycle.

    A packet that is longer than the receive memory loses its end; `flits` tells. While a packet waits to be read the
    next one stays in the network.

    Latency: 2 cycles from a tail on `rx` to `valid`, 1 from `start` to the first flit. Throughput: a flit a cycle.
    Reset: no packet is there; the memories stay.
    """

    def __init__(self, config: RouterConfig) -> None:
        self._config = config
        assert config.control_vl is not None
        self._lane_bits = (config.link.flit_bits // 32 - 1).bit_length()
        link = LinkSignature(config.link.replace(restart=False))
        super().__init__(
            {
                "tx": Out(link),
                "rx": In(link),
                "word": In(range(config.management_flits << self._lane_bits)),
                "read_data": Out(32),
                "write": In(1),
                "write_data": In(32),
                "valid": Out(1),
                "flits": Out(16),
                "free": In(1),
                "start": In(1),
                "start_flits": In(16),
                "busy": Out(1),
                "moved": Out(1),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        config, link = self._config, self._config.link
        depth, lane_bits, lanes = config.management_flits, self._lane_bits, link.flit_bits // 32
        lane, row = self.word[:lane_bits], self.word[lane_bits:]

        # Receive.
        m.submodules.arrivals = arrivals = VlBuffer(
            shape=BufferedFlitLayout(link), vls=1, depth=MANAGEMENT_BUFFER_FLITS
        )
        m.submodules.received = received = memory.Memory(shape=unsigned(link.flit_bits), depth=depth, init=[])
        store, look = received.write_port(), received.read_port(domain="comb")
        self._count = count = Signal(16, name="count")
        take = Signal()
        m.d.comb += [
            arrivals.write_valid.eq(self.rx.valid),
            arrivals.write_data.data.eq(self.rx.payload.data),
            arrivals.write_data.head.eq(self.rx.payload.head),
            arrivals.write_data.tail.eq(self.rx.payload.tail),
            take.eq(arrivals.non_empty & ~self.valid),
            arrivals.read_select.eq(1),
            arrivals.pop.eq(take),
            store.en.eq(take & (count < depth)),
            store.addr.eq(count),
            store.data.eq(arrivals.read_data.data),
            look.addr.eq(row),
            self.read_data.eq(look.data.word_select(lane, 32) if lane_bits else look.data),
            self.flits.eq(count),
        ]
        m.d.sync += [self.rx.credit_valid.eq(take), self.rx.credit_vl.eq(config.control_vl)]
        with m.If(take):
            m.d.sync += [
                count.eq(Mux(count.all(), count, count + 1)),
                self.valid.eq(arrivals.read_data.tail),
            ]
        with m.Elif(self.free & self.valid):
            m.d.sync += [count.eq(0), self.valid.eq(0)]

        # Send.
        m.submodules.to_send = to_send = memory.Memory(shape=unsigned(link.flit_bits), depth=depth, init=[])
        put, get = to_send.write_port(granularity=32), to_send.read_port(domain="comb")
        m.submodules.credits = credits = Credits(vls=1, depth=config.input_buffer_flits)
        place, left, go = Signal(range(depth)), Signal(range(depth + 1)), Signal()
        m.d.comb += [
            put.addr.eq(row),
            put.data.eq(self.write_data.replicate(lanes)),
            put.en.eq(Mux(self.write, 1 << lane if lane_bits else 1, 0)),
            get.addr.eq(place),
            self.busy.eq(left.any()),
            go.eq(self.busy & credits.available),
            credits.spend.eq(go),
            credits.refund.eq(self.tx.credit_valid),
            self.tx.valid.eq(go),
            self.tx.payload.data.eq(get.data),
            self.tx.payload.vl.eq(config.control_vl),
            self.tx.payload.head.eq(place == 0),
            self.tx.payload.tail.eq(left == 1),
            self.moved.eq(take | go),
        ]
        with m.If(self.start & ~self.busy & (self.start_flits <= depth)):
            m.d.sync += [place.eq(0), left.eq(self.start_flits)]
        with m.Elif(go):
            m.d.sync += [place.eq(place + 1), left.eq(left - 1)]
        return m
