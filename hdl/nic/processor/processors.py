"""The card's processors, one or two, joined to registers, SRAM, events and timers.

With two processors (nagar-thesis-2001 4.3.10) one sends and one receives. Each has these of its own:

- a port
- an interrupt status and mask
- a timer
- a queue before the host DMA engine
- its words in the registers that describe the next access

Everything else is there once, and both may use it.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any

from amaranth import Cat, Module, Mux, Signal, Value
from amaranth.lib.wiring import connect

from ...config import NicConfig
from ...register_bank import RegisterBank
from ...registers import Register
from ..rtc import Rtc, Timer, difference
from .interrupt import InterruptStatus
from .pair import BankJoin
from .port import ProcessorPort

__all__ = ["COMMON", "banked_registers", "join_events", "join_registers", "make_ports", "next_timer"]

COMMON = frozenset({"HOST_INTERRUPT", "RATE_SELECT"})
"""Registers of every card with stored fields that two processors share; those of blocks are `NicBlock.common`.

They set the hardware, and say nothing of the next access. RATE_SELECT is one of them, as a rate control unit with a
tree looks at it all the time.
"""


def banked_registers(
    registers: Mapping[str, Register], config: NicConfig, common: Collection[str]
) -> list[str]:
    """Names of those of `registers` of which each of two processors has its own; [] if there is one processor.

    `common`: registers of blocks that both share, as those of `COMMON`.
    """
    if config.processors == 1:
        return []
    return [
        name
        for name, register in registers.items()
        if name not in COMMON
        and name not in common
        and any(field.stored for field in register.fields.values())
    ]


def make_ports(config: NicConfig) -> list[ProcessorPort]:
    """The ports."""
    return [ProcessorPort(config, shared=config.processors == 2) for _ in range(config.processors)]


def join_registers(
    m: Module, config: NicConfig, ports: Sequence[ProcessorPort], registers: RegisterBank
) -> None:
    """Joins the ports to the register bank.

    In a card that is `pipelined` an access acts in the cycle after the one in which it has its turn.
    """
    access = ports[0].registers
    if len(ports) == 2:
        m.submodules.bank_join = turns = BankJoin()
        connect(m, ports[0].registers, turns.port_0)
        connect(m, ports[1].registers, turns.port_1)
        access = turns.bank
    if config.pipelined:
        bus = registers.bus
        m.d.comb += [
            *(getattr(bus, name).eq(getattr(access, name)) for name in ("read_offset", "write_offset")),
            *(
                getattr(access, name).eq(getattr(bus, name))
                for name in ("read_data", "read_mapped", "write_mapped")
            ),
        ]
        m.d.sync += [getattr(bus, name).eq(getattr(access, name)) for name in ("read", "write", "write_data")]
    else:
        connect(m, access, registers.bus)
    if len(ports) == 1:
        return
    domain = m.d.sync if config.pipelined else m.d.comb
    domain += registers.who.eq(turns.who)
    m.d.comb += [
        ports[0].bank_ready.eq(turns.ready[0]),
        ports[1].bank_ready.eq(turns.ready[1]),
    ]


def join_events(
    m: Module,
    config: NicConfig,
    r: RegisterBank,
    ports: Sequence[ProcessorPort],
    rtc: Rtc,
    sources: Mapping[str, Value],
    watch: Callable[[str, Value], None],
) -> tuple[list[Rtc | Timer], list[Value]]:
    """Adds interrupt status, clock and timers. Returns the timers and the event lines, one a processor.

    `sources`: the card's events by their names in ISR. An event of two bits has one for each processor, an event of one
    bit is for both.
    """
    fields = r.registers["ISR"].fields
    width = 1 + max(field.low for field in fields.values())
    levels = sum(field.mask for field in fields.values() if not field.write_one_clears)
    timers: list[Rtc | Timer] = [rtc]
    statuses: list[Any] = []
    all_sources: list[dict[str, Value]] = [dict(sources)]
    if len(ports) == 2:
        m.submodules.timer_1 = timer = Timer(config)
        m.d.comb += timer.ticks.eq(rtc.ticks)
        timers.append(timer)
        all_sources = [
            {name: source[i] if len(source) == 2 else source for name, source in sources.items()}
            for i in range(2)
        ]
    for i, (timer, mine) in enumerate(zip(timers, all_sources, strict=True)):
        m.submodules[f"status_{i}" if i else "status"] = status = InterruptStatus(width=width, levels=levels)
        statuses.append(status)
        mine["timer"] = timer.fired
        m.d.comb += [status.set[fields[name].low].eq(source) for name, source in mine.items()]
    shown, enabled = statuses[0].status, r.IMR.value.mask
    if len(ports) == 2:
        shown = Mux(r.who, statuses[1].status, statuses[0].status)
        enabled = Cat(value.mask for value in r.each["IMR"])
    for i, (timer, status) in enumerate(zip(timers, statuses, strict=True)):
        written, arms, mask = r.ISR.w_stb, r.TIMER.w_stb, r.IMR.value.mask
        if len(ports) == 2:
            written, arms, mask = written & (r.who == i), arms & (r.who == i), r.each["IMR"][i].mask
        m.d.comb += [status.clear.eq(Mux(written, r.ISR.w_data.as_value(), 0)), status.mask.eq(mask)]
        if i == 0:
            m.d.comb += [r.ISR.r_data.as_value().eq(shown), r.RTC.r_data.ticks.eq(rtc.ticks)]
        m.d.comb += [timer.compare.eq(r.TIMER.w_data.ticks), timer.arm.eq(arms)]
    events = statuses[0].status if len(ports) == 1 else Cat(status.status for status in statuses)
    watch("watch_events", events)
    watch("watch_enabled", enabled)
    watch("watch_rtc", rtc.ticks)
    return timers, [status.event for status in statuses]


def next_timer(m: Module, timers: Sequence[Rtc | Timer]) -> tuple[Value, Value]:
    """Whether a timer is armed, and the time at which the next one fires."""
    first = timers[0]
    if len(timers) == 1:
        return first.armed, first.time
    second = timers[1]
    earlier = Signal(name="timer_1_first")
    m.d.comb += earlier.eq(second.armed & (~first.armed | difference(second.time, first.time)[-1]))
    return first.armed | second.armed, Mux(earlier, second.time, first.time)
