"""The monitor of an AXI4 port (ARM IHI 0022, A3 to A5)."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

from amaranth import Array, Cat, Module, Mux, Signal, Value

from ..axi import Axi4Signature
from .monitor import Monitor, Rule, at_least, held

__all__ = ["Axi4Monitor"]

_FIXED, _WRAP, _RESERVED = 0, 2, 3
_BOUNDARY_BITS = 12
"""A burst does not cross 4096 bytes (A3.4.1)."""
_MOST_BEATS = 16
"""Most beats of a burst that is not incremented (A3.4.1)."""


class _Lengths:
    """A queue of numbers: `front`, `empty`; `push(value)` and `pop` are told once, as conditions of a cycle."""

    def __init__(self, m: Module, name: str, *, entries: int, bits: int) -> None:
        self._m = m
        self._items = [Signal(bits, name=f"{name}_{i}") for i in range(entries)]
        self.level = Signal(range(entries + 1), name=f"{name}_level")
        self.front, self.empty, self.full = self._items[0], self.level == 0, self.level == entries

    def step(self, *, push: Value, value: Value, pop: Value) -> None:
        """Let a number in and one out in a cycle. A push into a full queue is lost."""
        m, items = self._m, self._items
        goes, comes = pop & ~self.empty, push & (~self.full | pop)
        m.d.sync += self.level.eq(self.level + comes - goes)
        with m.If(goes):
            m.d.sync += [one.eq(after) for one, after in pairwise(items)]
        for i, one in enumerate(items):
            with m.If(comes & (self.level - goes == i)):
                m.d.sync += one.eq(value)


class Axi4Monitor(Monitor):
    """Watches an AXI4 port: held channels, bursts, last beats, and answers that belong to requests.

    Parameters: `signature`, the port's; `outstanding`, the most writes, and the most reads an ID, that may be under
    way. Raises ConfigError for an `outstanding` below 1.

    Members: those of `Axi4Signature` (all in); `violation` (out, a bit a rule).

    - Write data may come before its address, by at most `outstanding` bursts; bursts of data are in the addresses'
      order.
    - Responses of different IDs come in any order, read data of different IDs beat by beat. Those of one ID keep the
      order of its addresses.
    - A response comes in a later cycle than what it answers.
    """

    rules = {
        "aw_held": Rule("sender", "a write address fell or changed before it was taken"),
        "w_held": Rule("sender", "write data fell or changed before it was taken"),
        "ar_held": Rule("sender", "a read address fell or changed before it was taken"),
        "aw_burst": Rule("sender", "a write burst of a kind, length or alignment that does not exist"),
        "ar_burst": Rule("sender", "a read burst of a kind, length or alignment that does not exist"),
        "aw_size": Rule("sender", "the beats of a write are wider than the bus"),
        "ar_size": Rule("sender", "the beats of a read are wider than the bus"),
        "aw_crosses": Rule("sender", "a write burst crosses 4096 bytes"),
        "ar_crosses": Rule("sender", "a read burst crosses 4096 bytes"),
        "w_last": Rule("sender", "a write's last beat is not where its address says"),
        "write_many": Rule("sender", "more writes under way than allowed"),
        "read_many": Rule("sender", "more reads under way than allowed"),
        "b_held": Rule("receiver", "a write response fell or changed before it was taken"),
        "r_held": Rule("receiver", "read data fell or changed before it was taken"),
        "b_unasked": Rule("receiver", "a write response for no write of its ID"),
        "r_unasked": Rule("receiver", "read data for no read of its ID"),
        "r_last": Rule("receiver", "a read's last beat is not where its address said"),
    }
    payloads = {
        "aw": ("awid", "awaddr", "awlen", "awsize", "awburst"),
        "w": ("wdata", "wstrb", "wlast"),
        "b": ("bid", "bresp"),
        "ar": ("arid", "araddr", "arlen", "arsize", "arburst"),
        "r": ("rid", "rdata", "rresp", "rlast"),
    }

    def __init__(self, signature: Axi4Signature, *, outstanding: int = 4) -> None:
        self._port, self._outstanding = signature, at_least(type(self), "outstanding", outstanding, 1)
        super().__init__({name: member.shape for name, member in signature.members.items()})

    @classmethod
    def of(cls, signature: Axi4Signature, **parameters: Any) -> Axi4Monitor:
        """A monitor for a port of this signature."""
        return cls(signature, **parameters)

    def elaborate(self, platform: object) -> Module:
        m = Module()
        taken = {}
        for channel, names in self.payloads.items():
            valid, ready = getattr(self, f"{channel}valid"), getattr(self, f"{channel}ready")
            dropped, changed = held(m, channel, valid, ready, *(getattr(self, name) for name in names))
            m.d.comb += self.violation[f"{channel}_held"].eq(dropped | changed)
            taken[channel] = valid & ready
        for channel in ("aw", "ar"):
            self._judge_burst(m, channel)
        self._judge_writes(m, taken)
        self._judge_reads(m, taken)
        return m

    def _judge_burst(self, m: Module, channel: str) -> None:
        """The address, size, length and kind of a burst."""
        valid, address, beats, size, burst = (
            getattr(self, f"{channel}{name}") for name in ("valid", "addr", "len", "size", "burst")
        )
        bus_size = (self._port.data_bits // 8).bit_length() - 1
        in_page = address[:_BOUNDARY_BITS]
        aligned = ((in_page >> size) << size)[:_BOUNDARY_BITS]
        wraps = Cat(beats == n for n in (1, 3, 7, 15)).any() & (in_page == aligned)
        wrong = (
            (burst == _RESERVED) | ((burst == _FIXED) & (beats >= _MOST_BEATS)) | ((burst == _WRAP) & ~wraps)
        )
        crosses = (burst == 1) & (aligned + ((beats + 1) << size) > 1 << _BOUNDARY_BITS)
        m.d.comb += [
            self.violation[f"{channel}_burst"].eq(valid & wrong),
            self.violation[f"{channel}_size"].eq(valid & (size > bus_size)),
            self.violation[f"{channel}_crosses"].eq(valid & crosses),
        ]

    def _judge_writes(self, m: Module, taken: dict[str, Value]) -> None:
        """Lengths of data against addresses, and responses against both."""
        told, most, id_bits = self.violation, self._outstanding, self._port.id_bits
        aw, w, last = taken["aw"], taken["w"], taken["w"] & self.wlast
        addresses = _Lengths(m, "address", entries=most, bits=8 + id_bits)
        bursts = _Lengths(m, "burst", entries=most, bits=9)
        beat = Signal(9)  # of the burst under way, all of which came before this cycle
        more = Mux(beat.all(), beat, beat + 1)
        with m.If(w):
            m.d.sync += beat.eq(Mux(self.wlast, 0, more))
        # An address goes with a burst that is there, or with the one that ends now; a burst with the oldest address.
        joins = aw & bursts.empty & addresses.empty  # the burst under way is this address'
        addresses.step(
            push=aw & bursts.empty & ~(joins & last),
            value=Cat(self.awlen, self.awid),
            pop=last & ~addresses.empty,
        )
        bursts.step(push=last & addresses.empty & ~joins, value=beat, pop=aw)
        length = Mux(addresses.empty, self.awlen, addresses.front[:8])
        known = ~addresses.empty | joins
        under = Signal(range(most + 1))
        answered = taken["b"]
        m.d.comb += [
            told.w_last.eq(
                (w & known & (self.wlast != (beat == length)))
                | (joins & ~w & (beat > self.awlen))
                | (aw & ~bursts.empty & (bursts.front != self.awlen))
            ),
            told.write_many.eq((aw & (under == most)) | (last & bursts.full & ~aw)),
        ]
        # Complete writes that wait for their response, by ID.
        ready = [Signal(range(most + 1), name=f"written_{i}") for i in range(1 << id_bits)]
        ends = (last & known) | (aw & ~bursts.empty)
        whose = Mux(addresses.empty, self.awid, addresses.front[8:])
        m.d.comb += told.b_unasked.eq(self.bvalid & (Array(ready)[self.bid] == 0))
        goes = Signal(name="written_goes")
        m.d.comb += goes.eq(answered & ~told.b_unasked)
        m.d.sync += under.eq(under + (aw & (under != most)) - goes)
        for i, count in enumerate(ready):
            m.d.sync += count.eq(count + (ends & (whose == i) & (count != most)) - (goes & (self.bid == i)))

    def _judge_reads(self, m: Module, taken: dict[str, Value]) -> None:
        """Read data against the addresses of its ID."""
        told, most, id_bits = self.violation, self._outstanding, self._port.id_bits
        many, unasked, wrong = [], [], []
        for i in range(1 << id_bits):
            queue = _Lengths(m, f"read_{i}", entries=most, bits=8)
            mine = self.rid == i
            asks, comes = taken["ar"] & (self.arid == i), taken["r"] & mine & ~queue.empty
            beat = Signal(8, name=f"read_beat_{i}")
            # The length that was asked for is the truth: what goes on after it belongs to the next read.
            over = comes & (self.rlast | (beat == queue.front))
            with m.If(comes):
                m.d.sync += beat.eq(Mux(over, 0, beat + 1))
            queue.step(push=asks, value=self.arlen, pop=over)
            many.append(asks & queue.full & ~over)
            unasked.append(self.rvalid & mine & queue.empty)
            wrong.append(self.rvalid & mine & ~queue.empty & (self.rlast != (beat == queue.front)))
        m.d.comb += [
            told.read_many.eq(Cat(*many).any()),
            told.r_unasked.eq(Cat(*unasked).any()),
            told.r_last.eq(Cat(*wrong).any()),
        ]
