"""The check of every bit of the packets that a sink receives (`packet.py` has the bits that must come)."""

from __future__ import annotations

from typing import Any

from amaranth import Cat, Module, Mux, Signal, Value, unsigned
from amaranth.lib import data, memory, wiring
from amaranth.lib.wiring import In, Out

from ..link import FlitLayout
from ..packet import HEADER_LAYOUT, Kind
from ..working import works_when
from .config import TrafficConfig
from .packet import CHECK_OFFSET, IDENTITY, SEQUENCE_BITS, body, check_byte

__all__ = ["ERRORS", "Checker"]

ERRORS = data.StructLayout({"framing": 1, "integrity": 1, "order": 1, "destination": 1})
"""Kinds of errors, bits as in the ERRORS register."""


class Checker(wiring.Component):
    """Follows the packets of all VLs of a link.

    Members:

    - `node` (in): the number of this node.
    - `ordered` (in): check the order.
    - `flit` (in, `FlitLayout`), `valid` (in): a flit, taken in this cycle.
    - `errors` (out, `ERRORS`): the errors of this flit, in the same cycle.
    - `identity` (out, `IDENTITY`): identity of the flit's packet.
    - `known` (out): `identity` is valid.
    - `flits` (out): flits of a good packet that have been recognised with this one. They are all of the header with its
      last flit, then one each; 0 for flits that are not good.
    - `length` (out): flits of the packet so far, modulo 2^`length_bits`.
    - `done` (out): this is the tail of a packet of which every flit was good. The packet may be out of order.

    The errors:

    - `framing`: a head inside a packet, a flit outside of one, or a packet that ends before or after its header says.
    - `integrity`: a bit is wrong, or the packet is longer than `length_bits` count.
    - `destination`: the packet is not for this node.
    - `order`: the packet is not the next one of its source and VL.

    A packet with a bad flit is bad from there on. A tail must carry the sequence number that follows the last good one
    of its source and VL. After an error of order the numbers go on from the one that came. 256 packets lost in a row go
    unseen there.

    Latency: none. Throughput: a flit a cycle. Reset: outside of any packet; expected sequence numbers stay as they
    are.
    """

    def __init__(self, config: TrafficConfig) -> None:
        self._config = config
        members: dict[str, Any] = {
            "node": In(config.node_bits),
            "ordered": In(1),
            "flit": In(FlitLayout(config.link)),
            "valid": In(1),
            "errors": Out(ERRORS),
            "known": Out(1),
            "identity": Out(IDENTITY),
            "flits": Out(range(config.link.header_flits + 1)),
            "length": Out(config.length_bits),
            "done": Out(1),
        }
        super().__init__(members)

    def elaborate(self, platform: object) -> Module:
        m = Module()
        config, link = self._config, self._config.link
        flit, vl = self.flit, self.flit.vl
        works_when(m, self.valid)
        last = link.header_flits - 1

        # State of each VL: in a packet, in a bad one, flits so far, identity.
        inside, bad = Signal(link.vls), Signal(link.vls)
        was_inside, was_bad = inside.bit_select(vl, 1), bad.bit_select(vl, 1)
        m.submodules.positions = positions = memory.Memory(shape=config.length_bits, depth=link.vls, init=[])
        here, there = positions.read_port(domain="comb"), positions.write_port()
        index = Signal(config.length_bits)
        m.submodules.identities = identities = memory.Memory(shape=IDENTITY.size, depth=link.vls, init=[])
        stored, store = identities.read_port(domain="comb"), identities.write_port()
        at_last, follows = Signal(), Signal()
        m.d.comb += [
            here.addr.eq(vl),
            index.eq(Mux(flit.head, 0, here.data)),
            there.addr.eq(vl),
            there.data.eq(Mux(index.all(), index, index + 1)),
            there.en.eq(self.valid),
            at_last.eq(index == last),
            # A packet longer than any: its index stays at its end, which no good flit has.
            follows.eq(flit.head | was_inside),
        ]

        low, check, upper = self._header(m, index)
        identity: data.View = Signal(IDENTITY)
        m.d.comb += [
            stored.addr.eq(vl),
            store.addr.eq(vl),
            store.data.eq(upper),
            store.en.eq(self.valid & at_last),
            identity.eq(Mux(at_last, upper, stored.data)),
            self.identity.eq(identity),
            self.known.eq(index >= last),
        ]

        word = identity.as_value()
        expected = body(word[:32] ^ word[32:], index, flit.tail, link)
        framing, integrity, elsewhere = Signal(), Signal(), Signal()
        ends_wrong = Mux(at_last, flit.tail != identity.only, flit.tail & (index < last))
        m.d.comb += framing.eq((flit.head & was_inside) | ~follows | ends_wrong)
        with m.If(at_last):
            m.d.comb += [
                integrity.eq((check != check_byte(low, upper)) | (low[:4] != Kind.DATA)),
                elsewhere.eq(identity.destination != self.node),
            ]
        with m.Elif(index > last):
            m.d.comb += integrity.eq((flit.data != expected) | index.all())

        wrong, good = Signal(), Signal()
        # A head ends what was bad before; that it came inside a packet does not make its own packet bad.
        m.d.comb += [
            wrong.eq(
                integrity | elsewhere | (framing & ~(flit.head & was_inside)) | (flit.tail & (index < last))
            ),
            good.eq(self.valid & follows & ~wrong & (flit.head | ~was_bad)),
            self.length.eq(index + 1),
            self.flits.eq(Mux(good & self.known, Mux(at_last, link.header_flits, 1), 0)),
            self.done.eq(good & flit.tail),
        ]
        here_bit = Signal(link.vls)
        m.d.comb += here_bit.eq(1 << vl)
        with m.If(self.valid):
            m.d.sync += [
                inside.eq(Mux(follows & ~flit.tail, inside | here_bit, inside & ~here_bit)),
                bad.eq(Mux(good, bad & ~here_bit, bad | here_bit)),
            ]

        origin = identity.vl[: link.vl_bits]
        source = identity.source[: config.node_bits]
        place = Cat(origin, source) if link.vls > 1 else source
        depth = link.vls << config.node_bits
        m.submodules.sequences = rows = memory.Memory(shape=SEQUENCE_BITS, depth=depth, init=[])
        due, write = rows.read_port(domain="comb"), rows.write_port()
        m.d.comb += [
            due.addr.eq(place),
            write.addr.eq(place),
            write.data.eq(identity.sequence + 1),
            write.en.eq(self.done),
            self.errors.framing.eq(self.valid & framing),
            # Once a packet is bad its later flits say no more.
            self.errors.integrity.eq(self.valid & follows & integrity & (flit.head | ~was_bad)),
            self.errors.destination.eq(self.valid & follows & elsewhere & ~integrity),
            self.errors.order.eq(self.done & self.ordered & (due.data != identity.sequence)),
        ]
        return m

    def _header(self, m: Module, index: Value) -> tuple[Value, Value, Value]:
        """First byte, check byte and identity of the header whose last flit is here."""
        link = self._config.link
        parts: list[Value] = []
        for i in range(link.header_flits - 1):
            m.submodules[f"header_{i}"] = rows = memory.Memory(
                shape=unsigned(link.flit_bits), depth=link.vls, init=[]
            )
            read, write = rows.read_port(domain="comb"), rows.write_port()
            m.d.comb += [
                read.addr.eq(self.flit.vl),
                write.addr.eq(self.flit.vl),
                write.data.eq(self.flit.data),
                write.en.eq(self.valid & (index == i)),
            ]
            parts.append(read.data)
        header = Cat(*parts, self.flit.data)
        assert len(header) == HEADER_LAYOUT.size
        return header[:8], header[CHECK_OFFSET : CHECK_OFFSET + 8], header[64:]
