"""A bank of registers made from their SystemRDL declaration (`hdl/registers.py`)."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from amaranth import Module, Mux, Signal, Value, unsigned
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out

from ..registers import Register

__all__ = ["BankSignature", "RegisterBank", "RegisterSignature", "register_layout"]

OFFSET_BITS = 20
"""Width of a byte offset into a bank: a megabyte of the card's map, so that no register has an alias."""


def register_layout(register: Register) -> data.FlexibleLayout:
    """The 32-bit word of a register, by its fields."""
    return data.FlexibleLayout(
        32, {name: data.Field(unsigned(field.width), field.low) for name, field in register.fields.items()}
    )


class BankSignature(wiring.Signature):
    """Access to a bank, seen by the requester: a read and a write a cycle, never held off. Members:

    - `read` (out), `read_offset` (out, 20): read this register; `read_data` (in, 32) in the cycle after.
    - `write` (out), `write_offset` (out, 20), `write_data` (out, 32): write this register, all four bytes.
    - `read_mapped`, `write_mapped` (in): there is a register at the offset, in the same cycle.

    Offsets are in bytes, multiples of 4.
    """

    def __init__(self) -> None:
        super().__init__(
            {
                "read": Out(1),
                "read_offset": Out(OFFSET_BITS),
                "read_data": In(32),
                "read_mapped": In(1),
                "write": Out(1),
                "write_offset": Out(OFFSET_BITS),
                "write_data": Out(32),
                "write_mapped": In(1),
            }
        )


class RegisterSignature(wiring.Signature):
    """The hardware's side of a register, seen by the bank. Words have the register's layout. Members:

    - `value` (out): what its stored fields hold (`Field.stored`); other fields are zero.
    - `w_data`, `w_stb` (out): it is written in this cycle, with these bits; `value` follows in the next.
    - `r_stb` (out): it is read in this cycle.
    - `r_data` (in): what the fields that are not stored show, sampled in the cycle of `r_stb`.
    """

    def __init__(self, register: Register) -> None:
        layout = register_layout(register)
        super().__init__(
            {
                "value": Out(layout),
                "w_data": Out(layout),
                "w_stb": Out(1),
                "r_stb": Out(1),
                "r_data": In(layout),
            }
        )


def shown(register: Register, port: wiring.PureInterface) -> Value:
    """The word that software reads: stored fields, the hardware's fields, zero elsewhere."""
    stored = sum(field.mask for field in register.fields.values() if field.stored)
    other = sum(field.mask for field in register.fields.values() if field.sw_readable and not field.stored)
    return (port.value.as_value() & stored) | (port.r_data.as_value() & other)


class RegisterBank(wiring.Component):
    """The registers of one declaration, decoded.

    Members: `bus` (in, `BankSignature`), and one of each register's name (out, `RegisterSignature`). If there are
    `banked` ones (names): `who` (in), which of two processors has the access of this cycle; the stored fields of those
    registers are there twice, and `value` is that of `who`; `each` has both by the register's name.

    A field that software reads and writes and the hardware only sees is stored here; every other field is the
    hardware's, through `r_data` and `w_stb`. A field that software only writes reads as zero, and so do
    offsets without a register, where writes do nothing.

    `ahead`: which register it is gets decided a cycle ahead, from the offsets of the cycle before: they must stand a
    cycle before `read` or `write` comes. `write_mapped` and `read_mapped` then speak of those offsets.

    Latency: one cycle to read. Reset: stored fields are zero.
    """

    def __init__(
        self, registers: Mapping[str, Register], *, banked: Collection[str] = (), ahead: bool = False
    ) -> None:
        self.registers = registers
        self._ahead = ahead
        self._banked = frozenset(banked)
        self.each = {
            name: [Signal(register_layout(registers[name]), name=f"{name}_{i}") for i in range(2)]
            for name in banked
        }
        super().__init__(
            {"bus": In(BankSignature())}
            | ({"who": In(1)} if banked else {})
            | {name: Out(RegisterSignature(register)) for name, register in registers.items()}
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        bus = self.bus
        word = Signal(32)
        if self._ahead:
            self._decode_ahead(m, word)
        else:
            self._decode(m, word)
        with m.If(bus.read):
            m.d.sync += bus.read_data.eq(word)
        for name, register in self.registers.items():
            port = getattr(self, name)
            m.d.comb += port.w_data.eq(bus.write_data)
            for field_name, field in register.fields.items():
                if field.stored and name in self._banked:
                    mine = [value[field_name] for value in self.each[name]]
                    m.d.comb += port.value[field_name].eq(Mux(self.who, mine[1], mine[0]))
                    for i in range(2):
                        with m.If(port.w_stb & (self.who == i)):
                            m.d.sync += mine[i].eq(port.w_data[field_name])
                elif field.stored:
                    stored = Signal(field.width, name=f"{name}_{field_name}")
                    m.d.comb += port.value[field_name].eq(stored)
                    with m.If(port.w_stb):
                        m.d.sync += stored.eq(port.w_data[field_name])
        return m

    def _decode(self, m: Module, word: Signal) -> None:
        """Strobes, and the word read, from the offsets of this cycle."""
        bus = self.bus
        with m.Switch(bus.read_offset):
            for name, register in self.registers.items():
                with m.Case(register.offset):
                    port = getattr(self, name)
                    m.d.comb += [
                        bus.read_mapped.eq(1),
                        port.r_stb.eq(bus.read),
                        word.eq(shown(register, port)),
                    ]
        with m.Switch(bus.write_offset):
            for name, register in self.registers.items():
                with m.Case(register.offset):
                    m.d.comb += [bus.write_mapped.eq(1), getattr(self, name).w_stb.eq(bus.write)]

    def _decode_ahead(self, m: Module, word: Signal) -> None:
        """The same from those of the cycle before: a flip-flop a register, and an OR of the words."""
        bus = self.bus
        read, write = Signal(len(self.registers)), Signal(len(self.registers))
        words: Value = Value.cast(0)
        for i, (name, register) in enumerate(self.registers.items()):
            port = getattr(self, name)
            m.d.sync += [
                read[i].eq(bus.read_offset == register.offset),
                write[i].eq(bus.write_offset == register.offset),
            ]
            m.d.comb += [port.r_stb.eq(bus.read & read[i]), port.w_stb.eq(bus.write & write[i])]
            words |= Mux(read[i], shown(register, port), 0)
        m.d.comb += [word.eq(words), bus.read_mapped.eq(read.any()), bus.write_mapped.eq(write.any())]
