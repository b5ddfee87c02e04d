"""Counters, sums, extremes and histograms: rows of small memories, cleared by a walk."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

from amaranth import Cat, Const, Module, Mux, Signal, Value, unsigned
from amaranth.hdl import ShapeLike
from amaranth.lib import memory, wiring
from amaranth.lib.wiring import In, Out

from .config import TrafficConfig
from .packet import BORN_BITS
from .ports import ACCESS, CLASS_BYTES, CONTROL, STATISTICS, STATISTICS_BASE

__all__ = ["Tally", "TallyBank", "TallySignature", "bin_number", "bin_of", "bin_range"]

Kind = Literal["sum", "max", "min"]


class TallySignature(wiring.Signature):
    """An amount for one row, seen by the giver.

    Members: `valid` (out), `row` (out, `row_bits`), `amount` (out, `amount_bits`).
    """

    def __init__(self, *, row_bits: int, amount_bits: int) -> None:
        super().__init__({"valid": Out(1), "row": Out(row_bits), "amount": Out(amount_bits)})


class Tally(wiring.Component):
    """Rows of `bits` bits; each keeps the sum (modulo 2^bits), maximum or minimum of the amounts given to it.

    Members:

    - `give` (in, `TallySignature`): an amount, one a cycle, in the row from the next cycle on.
    - `clear` (in), `clear_row` (in): the row starts anew (0, or all ones for a minimum). An amount of this cycle is
      lost.
    - `read` (in), `read_row` (in): a row is read.
    - `value` (out): that row, in the cycle after.

    Reset: rows keep their contents; they start as if cleared.

    Latency: 1 cycle from an amount to its row, and to read. With `block`, for block RAM, it is 2 cycles from an amount
    to its row, and an amount is lost too that comes in the cycle before a clear. `direct`, for one row alone, shows it
    as it is in the cycle after `read`, without a register of its own. Throughput: an amount and a read a cycle.
    """

    def __init__(
        self,
        *,
        rows: int,
        bits: int,
        amount_bits: int,
        kind: Kind = "sum",
        block: bool = False,
        direct: bool = False,
    ) -> None:
        self._rows, self._bits, self._kind = rows, bits, kind
        self._block, self._direct = block, direct and rows == 1
        row_bits = max(1, (rows - 1).bit_length())
        super().__init__(
            {
                "give": In(TallySignature(row_bits=row_bits, amount_bits=amount_bits)),
                "clear": In(1),
                "clear_row": In(row_bits),
                "read": In(1),
                "read_row": In(row_bits),
                "value": Out(bits),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        start = (1 << self._bits) - 1 if self._kind == "min" else 0
        shape: ShapeLike = unsigned(self._bits)
        rows = memory.Memory(shape=shape, depth=self._rows, init=[start] * self._rows)
        m.submodules.rows = rows
        write = rows.write_port()
        shown = rows.read_port(domain="comb" if self._direct else "sync")
        valid, row, amount = self.give.valid, self.give.row, self.give.amount
        if self._block:
            # The row is read in the first cycle. What is written then shows through, for amounts of one row in turn.
            old = rows.read_port(domain="sync", transparent_for=[write])
            m.d.comb += [old.addr.eq(row), old.en.eq(1)]
            later = Signal.like(Cat(valid, row, amount))
            m.d.sync += later.eq(Cat(valid, row, amount))
            valid, row, amount = later[0], later[1 : 1 + len(row)], later[1 + len(row) :]
        else:
            old = rows.read_port(domain="comb")
            m.d.comb += old.addr.eq(row)
        new = {
            "sum": old.data + amount,
            "max": Mux(old.data > amount, old.data, amount),
            "min": Mux(old.data < amount, old.data, amount),
        }[self._kind]
        m.d.comb += [
            write.en.eq(valid | self.clear),
            write.addr.eq(Mux(self.clear, self.clear_row, row)),
            write.data.eq(Mux(self.clear, start, new)),
            self.value.eq(shown.data),
        ]
        if not self._direct:
            m.d.comb += [shown.en.eq(self.read), shown.addr.eq(self.read_row)]
        return m


class TallyBank(wiring.Component):
    """A `Tally` with a row a class for each of `specs`.

    `specs` maps the name in lower case of a register of `statistics.rdl` to (bits, amount bits, kind). A tally of 64
    bits is read as two words, the register and the one after it.

    Members:

    - the names (in, `TallySignature`): the amounts.
    - `control` (in, `CONTROL`): from the measurement, for its `clear`.
    - `access` (in, `ACCESS`): an access.
    - `answer` (out, 32): the word read in the cycle before, 0 if it is none of these.

    Latency: 1 cycle to read. Throughput: an amount for each tally and a read a cycle.
    """

    def __init__(self, config: TrafficConfig, specs: Mapping[str, tuple[int, int, Kind]]) -> None:
        self._config, self._specs = config, specs
        members: dict[str, Any] = {
            name: In(TallySignature(row_bits=config.class_bits, amount_bits=amount_bits))
            for name, (_bits, amount_bits, _kind) in specs.items()
        }
        super().__init__(members | {"control": In(CONTROL), "access": In(ACCESS), "answer": Out(32)})

    def elaborate(self, platform: object) -> Module:
        m = Module()
        config, access = self._config, self.access
        page_bits = (CLASS_BYTES - 1).bit_length()
        read, offset = Signal(), Signal(page_bits)
        base = STATISTICS_BASE // CLASS_BYTES
        m.d.comb += read.eq(access.read & (access.address[page_bits + 2 :] == base >> 2))
        with m.If(access.read):
            m.d.sync += offset.eq(Mux(read, access.address[:page_bits], CLASS_BYTES - 1))
        tallies = {}
        for name, (bits, amount_bits, kind) in self._specs.items():
            tally = Tally(
                rows=config.classes, bits=bits, amount_bits=amount_bits, kind=kind, direct=config.compact
            )
            m.submodules[name] = tallies[name] = tally
            wiring.connect(m, wiring.flipped(getattr(self, name)), tally.give)
            m.d.comb += [
                tally.clear.eq(self.control.clear),
                tally.clear_row.eq(self.control.now),
                tally.read.eq(read),
                tally.read_row.eq(access.address[page_bits:]),
            ]
        with m.Switch(offset):
            for name, tally in tallies.items():
                place = STATISTICS[name.upper()].offset
                for word in range(-(-len(tally.value) // 32)):
                    with m.Case(place + 4 * word):
                        m.d.comb += self.answer.eq(tally.value[32 * word :])
        return m


def bin_of(latency: int, config: TrafficConfig) -> int:
    """The model of `bin_number`.

    With s = `histogram_sub_bits`, bins are linear, of one cycle, below 2^s. Above that there are 2^s bins an octave, so
    that a bin's width is at most 2^-s of its latency.
    """
    sub = config.histogram_sub_bits
    octave = max(latency.bit_length() - 1 - sub, 0)
    return latency if latency < 1 << sub else (octave << sub) + (latency >> octave)


def bin_range(position: int, config: TrafficConfig) -> tuple[int, int]:
    """First and last latency of a bin, cycles."""
    sub = config.histogram_sub_bits
    if position < 2 << sub:
        return position, position
    octave = (position >> sub) - 1
    first = (position - (octave << sub)) << octave
    return first, first + (1 << octave) - 1


def bin_number(m: Module, latency: Value, config: TrafficConfig) -> Value:
    """The bin of a latency of `BORN_BITS` bits, `bin_bits` wide; combinational."""
    sub = config.histogram_sub_bits
    # A binary search for the octave: shifted down until only sub + 1 bits are left.
    rest: Value = latency
    octave: list[Value] = []
    for shift in (16, 8, 4, 2, 1):
        large = Signal(name=f"octave_{shift}")
        less = Signal(BORN_BITS, name=f"rest_{shift}")
        m.d.comb += [
            large.eq(rest[sub + shift :].any() if sub + shift < BORN_BITS else Const(0)),
            less.eq(Mux(large, rest >> shift, rest)),
        ]
        octave.insert(0, large)
        rest = less
    return ((Cat(*octave) << sub) + rest[: sub + 1])[: config.bin_bits]
