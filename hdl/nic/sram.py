"""The card's SRAM: one word an access, one access a cycle, shared by round robin.

It holds firmware data and stages packets (nagar-thesis-2001 3.1). The local bus of a LANai 4 runs at twice the
processor's clock: two 32-bit accesses a cycle. Here that is one access of a word as wide as a flit, 64 bits in the
`lanai4` profile. So the link engines move a flit an access.
"""

from __future__ import annotations

from functools import reduce
from operator import or_

from amaranth import Cat, Module, Mux, Signal
from amaranth.lib import wiring
from amaranth.lib.memory import Memory
from amaranth.lib.wiring import In, Out

from ..arbiter.least_recent import LeastRecentArbiter
from ..arbiter.round_robin import RoundRobinArbiter
from ..config import ConfigError, NicConfig

__all__ = ["Sram", "SramPortSignature"]


class SramPortSignature(wiring.Signature):
    """A port of the SRAM, seen by the requester. Members:

    - `valid` (out): an access is wanted; the other outputs belong to it. It may be withdrawn until granted.
    - `write` (out): the access is a write.
    - `address` (out, `range(sram_words)`): the word.
    - `data` (out, `8 * word_bytes` bits), `mask` (out, `word_bytes` bits): the bytes to write, byte 0 in the low bits.
      Only bytes whose mask bit is set are written.
    - `ready` (in): the access is granted, and done at the end of this cycle. It may be up without `valid`.
    - `rdata` (in): the word read, in the cycle after a granted read and in no other.
    """

    def __init__(self, config: NicConfig) -> None:
        super().__init__(
            {
                "valid": Out(1),
                "write": Out(1),
                "address": Out(range(config.sram_words)),
                "data": Out(8 * config.word_bytes),
                "mask": Out(config.word_bytes),
                "ready": In(1),
                "rdata": In(8 * config.word_bytes),
            }
        )


class Sram(wiring.Component):
    """The card's SRAM, whose ports have turns. Members: `port_0` to `port_{n-1}` (in, `SramPortSignature`).

    Every cycle with a request grants exactly one port, in the same cycle. The turn then passes to the port after the
    one granted. So a port that keeps asking waits at most `ports - 1` cycles. All words are zero at power-up; a reset
    leaves them as they are. Latency: a read takes one cycle from its grant. Throughput: an access a cycle, of one port.

    With `config.pipelined` a grant is decided a cycle ahead and stands in a register, so that no path leads from
    `valid` to `ready`. A request is granted a cycle later, or up to `ports` cycles. A port that goes on asking still
    gets every cycle that no other one wants. It keeps the grant of the cycle behind its last access, for nothing, if no
    other port asked for that cycle in time; so this holds up nobody.

    Raises ConfigError if there is no port.
    """

    def __init__(self, config: NicConfig, *, ports: int) -> None:
        if ports < 1:
            raise ConfigError(f"Sram: ports = {ports}: at least 1")
        self.config = config
        self.ports = ports
        super().__init__({f"port_{i}": In(SramPortSignature(config)) for i in range(ports)})

    def elaborate(self, platform: object) -> Module:
        m = Module()
        ports = [getattr(self, f"port_{i}") for i in range(self.ports)]
        m.submodules.memory = memory = Memory(
            shape=8 * self.config.word_bytes, depth=self.config.sram_words, init=[]
        )
        write = memory.write_port(granularity=8)
        read = memory.read_port()

        kind = LeastRecentArbiter if self.config.pipelined else RoundRobinArbiter
        m.submodules.arbiter = arbiter = kind(size=self.ports)
        m.d.comb += [arbiter.requests.eq(Cat(port.valid for port in ports)), arbiter.advance.eq(1)]
        grant: Signal = arbiter.grant
        if self.config.pipelined:
            grant = Signal(self.ports)
            m.d.sync += grant.eq(arbiter.grant)

        writes = [port.write & port.valid if self.config.pipelined else port.write for port in ports]
        words = [
            Cat(write, port.address, port.mask, port.data) for write, port in zip(writes, ports, strict=True)
        ]
        chosen = Signal(len(words[0]))
        m.d.comb += chosen.eq(reduce(or_, (Mux(grant[i], word, 0) for i, word in enumerate(words))))
        m.d.comb += [
            Cat(write_enable := Signal(), write.addr, mask := Signal(self.config.word_bytes), write.data).eq(
                chosen
            ),
            write.en.eq(Mux(write_enable, mask, 0)),
            read.addr.eq(write.addr),
            read.en.eq(1),
        ]
        for i, port in enumerate(ports):
            m.d.comb += [port.ready.eq(grant[i]), port.rdata.eq(read.data)]
        return m
