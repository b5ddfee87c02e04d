"""The CRC in the trailer of an adapter's packet: it covers header, payload, and the trailer's other bits."""

from __future__ import annotations

import zlib

from amaranth import Module, Signal, Value
from amaranth.lib import wiring
from amaranth.lib.memory import Memory
from amaranth.lib.wiring import In, Out

from ..config.link import LinkConfig
from ..nic.dma.crc import CRC_BITS, tables, xor_all
from ..packet import crc32
from .layout import TRAILER_LAYOUT

__all__ = ["REST_BITS", "TrailerCrc", "trailer_crc"]

REST_BITS = TRAILER_LAYOUT.size - CRC_BITS
"""Bits of a trailer above its CRC."""
assert TRAILER_LAYOUT["crc"].offset == 0


def trailer_crc(header: int, payload: bytes, trailer: int, link: LinkConfig) -> int:
    """The CRC that belongs into a trailer: `packet.crc32` gone on with the 12 bytes above the CRC.

    It does not depend on the low 32 bits of `trailer`.
    """
    rest = trailer >> CRC_BITS & (1 << REST_BITS) - 1
    return zlib.crc32(rest.to_bytes(REST_BITS // 8, "little"), crc32(header, payload, link))


class TrailerCrc(wiring.Component):
    """The step of the CRC over a trailer's other bits. It is linear: their part is found by itself.

    Members:

    - `crc` (in, 32): that of header and payload, as `PacketCrc` has it.
    - `rest` (in, `REST_BITS`): the trailer's bits above its CRC.
    - `whole` (out, 32): the trailer's CRC.

    Latency: none from `crc`, and none from `rest`; with `early` 1 cycle from `rest`, whose part is a register then.
    Throughput: one a cycle. Reset: there is nothing to reset.
    """

    def __init__(self, *, early: bool) -> None:
        self._early = early
        super().__init__({"crc": In(CRC_BITS), "rest": In(REST_BITS), "whole": Out(CRC_BITS)})

    def elaborate(self, platform: object) -> Module:
        m = Module()
        rows = tables(REST_BITS)

        def step(name: str, word: Value) -> Value:
            terms: list[Value] = []
            for i in range(len(word) // 4):
                m.submodules[f"{name}_{i}"] = rom = Memory(shape=CRC_BITS, depth=16, init=rows[i])
                port = rom.read_port(domain="comb")
                m.d.comb += port.addr.eq(word[4 * i :][:4])
                terms.append(port.data)
            return xor_all(terms)

        rest = Signal(CRC_BITS)
        if self._early:
            m.d.sync += rest.eq(step("rest", self.rest))
        else:
            m.d.comb += rest.eq(step("rest", self.rest))
        m.d.comb += self.whole.eq(~(step("crc", ~self.crc) ^ rest))
        return m
