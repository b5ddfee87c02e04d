"""The set-up of a source's classes (`class.rdl`): a row a class in a memory for each register."""

from __future__ import annotations

from typing import Any

from amaranth import Module, Mux, Signal, Value
from amaranth.lib import memory, wiring
from amaranth.lib.wiring import In, Out

from ..register_bank import register_layout
from .config import TrafficConfig
from .ports import ACCESS, CLASS, CLASS_BASE, CLASS_BYTES, Mode

__all__ = ["ClassSettings"]

PAGE_BITS = (CLASS_BYTES - 1).bit_length()


class ClassSettings(wiring.Component):
    """The words that software has written in the class pages.

    Members:

    - `access` (in, `ACCESS`): an access of the pages.
    - `answer` (out, 32): the word read in the cycle before, 0 if it is none of these pages, or `config.compact`.
    - `number` (in, `class_bits`): a class.
    - the registers' names in lower case (out, their layout): the words of that class, in the same cycle.
    - `is_off`, `is_random`, `is_on_off`, `is_trace` (out, `classes`): modes of all classes. A class that is in none of
      them is periodic.

    Latency: 1 cycle to read. Throughput: an access a cycle. Reset: all classes are off; other rows keep their contents,
    zeros at first.
    """

    def __init__(self, config: TrafficConfig) -> None:
        self._config = config
        members: dict[str, Any] = {
            name.lower(): Out(register_layout(register)) for name, register in CLASS.items()
        }
        modes = {name: Out(config.classes) for name in ("is_random", "is_on_off", "is_trace")}
        super().__init__(
            {
                "access": In(ACCESS),
                "answer": Out(32),
                "number": In(config.class_bits),
                "is_off": Out(config.classes, init=(1 << config.classes) - 1),
            }
            | modes
            | members
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        config, access = self._config, self.access
        mine, offset = Signal(), Signal(PAGE_BITS)
        row = access.address[PAGE_BITS : PAGE_BITS + config.class_bits]
        # Four pages, however many classes there are: those of other classes are as good as not there.
        first = CLASS_BASE >> PAGE_BITS
        m.d.comb += [
            mine.eq(
                (access.address[PAGE_BITS + 2 :] == first >> 2)
                & (access.address[PAGE_BITS:] < first + config.classes)
            ),
        ]
        with m.If(access.read):
            m.d.sync += offset.eq(Mux(mine, access.address[:PAGE_BITS], CLASS_BYTES - 1))
        for name, register in CLASS.items():
            m.submodules[name.lower()] = rows = memory.Memory(shape=32, depth=config.classes, init=[])
            write, here = rows.write_port(), rows.read_port(domain="comb")
            known = sum(field.mask for field in register.fields.values())
            m.d.comb += [
                write.en.eq(access.write & mine & (access.address[:PAGE_BITS] == register.offset)),
                write.addr.eq(row),
                write.data.eq(access.data & known),
                here.addr.eq(self.number),
                Value.cast(getattr(self, name.lower())).eq(here.data),
            ]
            if not config.compact:
                shown = rows.read_port(domain="sync")
                m.d.comb += [shown.en.eq(access.read), shown.addr.eq(row)]
                with m.If(offset == register.offset):
                    m.d.comb += self.answer.eq(shown.data)
            if name == "CONTROL":
                place = register.fields["mode"]
                mode = access.data[place.low : place.low + place.width]
                modes = {
                    Mode.OFF: self.is_off,
                    Mode.RANDOM: self.is_random,
                    Mode.ON_OFF: self.is_on_off,
                    Mode.TRACE: self.is_trace,
                }
                if not config.random:
                    del modes[Mode.RANDOM], modes[Mode.ON_OFF]
                if not config.trace_frames:
                    del modes[Mode.TRACE]
                with m.If(write.en):
                    for value, flags in modes.items():
                        m.d.sync += flags.bit_select(row, 1).eq(mode == value)
        return m


assert CLASS_BASE >> PAGE_BITS & 3 == 0
