"""A bank of registers made from their SystemRDL declaration (`hdl/registers.py`)."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from amaranth import Cat, Module, Mux, Signal, Value, unsigned
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out

from .config import NicConfig
from .registers import Register

__all__ = ["BankSignature", "Name", "RegisterBank", "RegisterSignature", "register_layout"]

OFFSET_BITS = 20
"""Width of a byte offset into a bank: a megabyte of the card's map, so that no register has an alias."""


@dataclass(frozen=True, kw_only=True)
class Name:
    """A field of a command that names a thing.

    - `field`: a field of the command's own register, or `REGISTER.field` of one that was written before it.
    - `things`: the field of `NicConfig` that says how many there are, or `link.vls`. With 0 of them the card does not
      look at the name.
    - `only`: a field, given as `field` is, and values. The name counts only if the field has one of these values.
    """

    field: str
    things: str
    only: tuple[str, tuple[int, ...]] | None = None

    def count(self, config: NicConfig) -> int:
        """The number of these things on a card; 0 if the card does not look at the name."""
        return config.link.vls if self.things == "link.vls" else int(getattr(config, self.things))


def register_layout(register: Register) -> data.FlexibleLayout:
    """The 32-bit word of a register, by its fields."""
    return data.FlexibleLayout(
        32, {name: data.Field(unsigned(field.width), field.low) for name, field in register.fields.items()}
    )


class BankSignature(wiring.Signature):
    """Access to a bank, seen by the requester: a read and a write a cycle, never held off. Members:

    - `read` (out), `read_offset` (out, 20): read this register.
    - `read_data` (in, 32): its word, in the cycle after.
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

    - `value` (out): the stored fields (`Field.stored`); other fields are zero.
    - `w_stb`, `w_data` (out): the register is written in this cycle, with these bits; `value` follows in the next.
    - `r_stb` (out): the register is read in this cycle.
    - `r_data` (in): the word that the fields which are not stored show, sampled in the cycle of `r_stb`.
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

    Members:

    - `bus` (in, `BankSignature`): the accesses.
    - a member of each register's name (out, `RegisterSignature`).
    - `who` (in), only if there are `banked` registers: which of two processors has the access of this cycle.
    - `refusals` (out, 16): writes refused since reset, modulo 2^16; 0 without `names`.
    - `refused_offset` (out, 12): the register of the last one; 0 without `names`.

    A field that software reads and writes and the hardware only sees is stored here. Every other field is the
    hardware's, through `r_data` and `w_stb`. A field that software only writes reads as zero. So do offsets without a
    register, where writes do nothing.

    Parameters:

    - `banked`: names of registers whose stored fields are there twice. Their `value` is that of `who`; the attribute
      `each` has both by the register's name.
    - `ahead`: the register is decided a cycle ahead, from the offsets of the cycle before. They must stand a cycle
      before `read` or `write` comes. `write_mapped` and `read_mapped` then speak of those offsets.
    - `names` (`active_names`): a write of one of these registers that names a thing which is not there is refused. Its
      `w_stb` stays low, and nothing of it is stored.

    Latency: one cycle to read. Throughput: an access a cycle. Reset: stored fields are zero.
    """

    def __init__(
        self,
        registers: Mapping[str, Register],
        *,
        banked: Collection[str] = (),
        ahead: bool = False,
        names: Mapping[str, Sequence[tuple[Name, int]]] | None = None,
    ) -> None:
        self.registers = registers
        self._names = names or {}
        self._ahead = ahead
        self._banked = frozenset(banked)
        self.each = {
            name: [Signal(register_layout(registers[name]), name=f"{name}_{i}") for i in range(2)]
            for name in banked
        }
        super().__init__(
            {"bus": In(BankSignature())}
            | ({"who": In(1)} if banked else {})
            | {"refusals": Out(16), "refused_offset": Out(12)}
            | {name: Out(RegisterSignature(register)) for name, register in registers.items()}
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        bus = self.bus
        word = Signal(32)
        # Writes of registers with names, before it is known whether there is what they name.
        self._asked = {name: Signal(name=f"{name}_asked") for name in self._names}
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
        self._refuse(m)
        return m

    def _field(self, command: str, path: str) -> Value:
        """A field by its path in `Name`."""
        register, _, field = path.rpartition(".")
        return getattr(self, register).value[field] if register else getattr(self, command).w_data[field]

    def _refuse(self, m: Module) -> None:
        """Refuses a write of a register with names that names a thing which is not there."""
        for command, names in self._names.items():
            unknown: Value | int = 0
            for name, count in names:
                counts: Value | int = 1
                if name.only is not None:
                    field = self._field(command, name.only[0])
                    counts = Cat(field == value for value in name.only[1]).any()
                unknown = unknown | (counts & (self._field(command, name.field) >= count))
            refused = Signal(name=f"{command}_refused")
            m.d.comb += [
                refused.eq(self._asked[command] & unknown),
                getattr(self, command).w_stb.eq(self._asked[command] & ~refused),
            ]
            with m.If(refused):
                m.d.sync += [
                    self.refusals.eq(self.refusals + 1),
                    self.refused_offset.eq(self.registers[command].offset),
                ]

    def _strobe(self, name: str) -> Value:
        """The signal that says that a register is written."""
        return self._asked[name] if name in self._asked else getattr(self, name).w_stb

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
                    m.d.comb += [bus.write_mapped.eq(1), self._strobe(name).eq(bus.write)]

    def _decode_ahead(self, m: Module, word: Signal) -> None:
        """Strobes and word from the offsets of the cycle before: a flip-flop a register, and an OR of the words."""
        bus = self.bus
        read, write = Signal(len(self.registers)), Signal(len(self.registers))
        words: Value = Value.cast(0)
        for i, (name, register) in enumerate(self.registers.items()):
            port = getattr(self, name)
            m.d.sync += [
                read[i].eq(bus.read_offset == register.offset),
                write[i].eq(bus.write_offset == register.offset),
            ]
            m.d.comb += [port.r_stb.eq(bus.read & read[i]), self._strobe(name).eq(bus.write & write[i])]
            words |= Mux(read[i], shown(register, port), 0)
        m.d.comb += [word.eq(words), bus.read_mapped.eq(read.any()), bus.write_mapped.eq(write.any())]
