"""The receive DMA engine: puts packets with a good CRC into the buffer that it was armed with.

One of the two engines for "sending (receiving) packets to (from) the external network from (to) SRAM"
(nagar-thesis-2001 3.1), called NRDMA there.
"""

from __future__ import annotations

from amaranth import Module, Signal, Value
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from ...config import NicConfig
from ...link import FlitLayout
from ...packet import HEADER_LAYOUT
from ..sram import SramPortSignature
from .crc import PacketCrc

__all__ = ["RECEIVE_COMMAND", "ReceiveEngine"]

RECEIVE_COMMAND = data.StructLayout({"sram_address": 20, "bytes": 16})
"""A buffer.

- `sram_address`: byte address in the SRAM, a multiple of the flit (its low bits are ignored).
- `bytes`: its room for payload, behind the 16 bytes of the header.
"""


class ReceiveEngine(wiring.Component):
    """The receive engine: one buffer, one packet in it.

    Members:

    - `start` (in, stream of `RECEIVE_COMMAND`): arms the engine; ready when it is not armed.
    - `armed` (out): a buffer waits for its packet, or the packet is coming in. While `armed` is low flits wait. With
      `receive_wait_cycles` they wait so long at most; then all packets are thrown away, until a buffer is armed.
    - `done` (out): high in the first cycle in which a whole good packet stands in the buffer. The header comes first,
      the CRC is left out. The engine is not armed any more and can be armed in this cycle.
    - `bytes` (out, 16), `vl` (out, 4): payload bytes and virtual lane of the last good packet, from `done` on.
    - `crc_errors`, `length_errors` (out, 32): packets dropped since reset.
    - `discarded` (out, 32), only with `receive_wait_cycles`: packets thrown away for want of a buffer since reset.
    - `rests` (out), only with `receive_wait_cycles`: no packet waits whose time will come.
    - `sram` (out, `SramPortSignature`): writes of the header and the header's length of payload, never past the room.
    - `flits` (in, stream of `FlitLayout`): whole packets, one after the other.

    A packet is dropped for its length if its header has more payload than the buffer has room. It is also dropped if
    its header has more or less payload than its flits have. Otherwise it is dropped for a CRC that differs. The engine
    stays armed with the same buffer, in which parts of the dropped packet may stand.

    Throughput: a flit a cycle while the SRAM grants a write a cycle; the CRC flit and the flits of a packet that
    does not fit need no write. Latency: `done` comes in the cycle after the one in which the CRC flit is taken;
    `sram.valid` follows `flits.valid`, and `flits.ready` follows `sram.ready`, in the same cycle. Reset: not armed,
    counters 0.
    """

    def __init__(self, config: NicConfig) -> None:
        self.config = config
        super().__init__(
            {
                "start": In(stream.Signature(RECEIVE_COMMAND)),
                "armed": Out(1),
                "done": Out(1),
                "bytes": Out(16),
                "vl": Out(4),
                "crc_errors": Out(32),
                "length_errors": Out(32),
                "sram": Out(SramPortSignature(config)),
                "flits": In(stream.Signature(FlitLayout(config.link))),
            }
            | ({"discarded": Out(32), "rests": Out(1)} if config.receive_wait_cycles else {})
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        link, sram, flit = self.config.link, self.sram, self.flits.payload
        size = link.flit_bytes
        shift = size.bit_length() - 1

        base = Signal.like(sram.address)
        word = Signal.like(sram.address)
        room = Signal(16)
        header_left = Signal(range(link.header_flits + 1), init=link.header_flits)
        length = Signal(16)
        payload_left = Signal(17 - shift)  # flits that still come before the CRC, once the header is there
        payload_none = Signal(init=1)  # none of them
        drop = Signal()  # the flits left, to the tail, are for nobody
        taken = Signal()
        store = Signal()
        in_header = header_left != 0
        offered: Value = self.flits.valid
        ready: Value = self.armed & (~store | sram.ready)
        if self.config.receive_wait_cycles:
            discards = self._discard(m)
            offered, ready = offered & ~discards, discards | ready
        m.d.comb += [
            store.eq(~drop & (in_header | ~payload_none)),
            self.flits.ready.eq(ready),
            taken.eq(offered & self.flits.ready),
            sram.valid.eq(offered & self.armed & store),
            sram.write.eq(1),
            sram.address.eq(word),
            sram.data.eq(flit.data),
            sram.mask.eq(-1),
            self.start.ready.eq(~self.armed),
        ]
        # The padding of the last flit may lie past the buffer's end.
        with m.If(~in_header & (payload_left == 1) & (length[:shift] != 0)):
            m.d.comb += sram.mask.eq((1 << length[:shift]) - 1)

        m.submodules.crc = crc = PacketCrc(link)
        m.d.comb += [
            crc.valid.eq(taken & store),
            # The same, without a comparison.
            crc.first.eq(flit.head if self.config.pipelined else header_left == link.header_flits),
            crc.data.eq(flit.data),
        ]

        # The length stands in the header's last flit, at every width of the link.
        place = HEADER_LAYOUT["length"]
        assert place.offset // link.flit_bits == link.header_flits - 1
        told = Signal(16)
        m.d.comb += told.eq(flit.data[place.offset % link.flit_bits :][: place.width])

        m.d.sync += self.done.eq(0)
        with m.If(taken):
            with m.If(store):
                m.d.sync += word.eq(word + 1)
            with m.If(in_header):
                m.d.sync += header_left.eq(header_left - 1)
                with m.If(header_left == 1):
                    m.d.sync += [
                        length.eq(told),
                        payload_left.eq((told + size - 1)[shift:]),
                        payload_none.eq(told == 0),
                        drop.eq(told > room),
                    ]
            with m.Elif(~payload_none):
                m.d.sync += [payload_left.eq(payload_left - 1), payload_none.eq(payload_left == 1)]
            with m.Else():
                m.d.sync += drop.eq(1)  # this was the place of the tail
            with m.If(flit.tail):
                m.d.sync += [word.eq(base), header_left.eq(link.header_flits), drop.eq(0)]
                with m.If(drop | in_header | ~payload_none):
                    m.d.sync += self.length_errors.eq(self.length_errors + 1)
                with m.Elif(crc.crc != flit.data[: len(crc.crc)]):
                    m.d.sync += self.crc_errors.eq(self.crc_errors + 1)
                with m.Else():
                    m.d.sync += [
                        self.done.eq(1),
                        self.armed.eq(0),
                        self.bytes.eq(length),
                        self.vl.eq(flit.vl),
                    ]

        with m.If(self.start.valid & self.start.ready):
            command = self.start.payload
            first = command.sram_address[shift:]
            m.d.sync += [self.armed.eq(1), base.eq(first), word.eq(first), room.eq(command.bytes)]
        return m

    def _discard(self, m: Module) -> Value:
        """Logic that throws packets away for want of a buffer; returns whether one is being thrown away.

        That one goes whole, though a buffer may be armed meanwhile.
        """
        flits, most = self.flits, self.config.receive_wait_cycles
        waited = Signal(range(most + 1))
        late, discards = Signal(), Signal()
        m.d.comb += [late.eq(waited == most), self.rests.eq(self.armed | late | ~flits.valid)]
        with m.If(self.armed):
            m.d.sync += waited.eq(0)
        with m.Elif(flits.valid & ~late):
            m.d.sync += waited.eq(waited + 1)
        with m.If(discards & flits.valid & flits.payload.tail):
            m.d.sync += [discards.eq(0), self.discarded.eq(self.discarded + 1)]
        with m.Elif(flits.valid & late & ~self.armed & ~self.start.valid):
            m.d.sync += discards.eq(1)
        return discards
