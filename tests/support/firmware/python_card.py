"""A NIC and its host in plain Python: registers by `nic.rdl`, engines with set delays, doorbells, a rate control model.

It implements `ProcessorPort` for firmware (`Card`) and `HostBus` for host software (`Host`), so that both run end to
end without RTL. A `Network` joins cards: a packet holds its sender's engine until the receiver has taken it.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from math import ceil
from typing import Any

import numpy as np
from lanikai.firmware.accesses import AccessList
from lanikai.firmware.carry_out import carry_out
from lanikai.firmware.registers import NIC_REGISTERS, pack, unpack
from lanikai.hdl.config import NicConfig
from lanikai.hdl.nic.nic import HOST_REGISTERS
from lanikai.hdl.nic.ports import DOORBELL_BASE, DOORBELL_PAGE_BYTES, REGISTER_BASE, SRAM_BASE
from lanikai.hdl.packet import Header, Kind, packet_flits

from support.firmware.scheduler import Event, World

NAMES = {register.offset: name for name, register in NIC_REGISTERS.items()}
HEADER_BYTES = 16


@dataclass
class Delays:
    """Delays in cycles.

    - Host DMA: `dma_setup` + beats + `burst` for each burst.
    - Link: flits at the link's rate.
    - `hop`: from sender to receiver.
    """

    dma_setup: int = 76
    burst: int = 0
    hop: int = 12


@dataclass
class RateFlow:
    """A flow of the rate control unit."""

    idt: int = 0
    ndt: int = 0
    fraction: Fraction = Fraction()
    valid: bool = False


class Network:
    """Joins cards by node number.

    - `drop(header)`: may lose a packet.
    - `fate(header)`: how much later than the link's time each copy of a packet arrives: none, one or several, in any
      order.
    - `log`: every header with its cycle of arrival.
    """

    def __init__(
        self,
        world: World,
        drop: Callable[[Header], bool] | None = None,
        fate: Callable[[Header], list[int]] | None = None,
    ) -> None:
        self.world = world
        self.cards: dict[int, Card] = {}
        self.drop, self.fate = drop, fate
        self.log: list[tuple[int, Header]] = []


class Card:
    """A NIC: `CardPorts`, and the `ProcessorPort` of its processor."""

    def __init__(self, network: Network, node: int, nic: NicConfig, delays: Delays | None = None) -> None:
        self.network, self.world, self.node, self.nic = network, network.world, node, nic
        self.delays = Delays() if delays is None else delays
        self.memory = np.zeros(1 << 20, np.uint8)
        self.sram = bytearray(nic.sram_bytes)
        self.registers = dict.fromkeys(NIC_REGISTERS, 0)
        self.isr: set[str] = set()
        self.busy = {"host_dma": False, "send": False}
        self.armed: int | None = None
        self.inbox: deque[tuple[bytes, Callable[[], None]]] = deque()
        self.queue: deque[tuple[int, int]] = deque()
        self.words: dict[int, int] = {}
        self.room = self.world.flag()
        self.flows = [RateFlow() for _ in range(nic.flows)]
        self.bad_addresses: set[int] = set()
        self.watches: list[CardWatch] = []
        self._event = self.world.flag()
        self.interrupts = self.world.flag()
        self._list: AccessList | None = None
        network.cards[node] = self

    @property
    def processors(self) -> tuple[Card]:
        return (self,)

    @property
    def cycle(self) -> int:
        return self.world.cycle

    @property
    def rtc(self) -> int:
        ticks = self.world.cycle * self.nic.rtc_cycles_den // self.nic.rtc_cycles_num
        return ticks & (1 << self.nic.rtc_bits) - 1

    async def sleep(self, cycles: int) -> None:
        await self.world.sleep(cycles)

    def flag(self) -> Event:
        return self.world.flag()

    def spawn(self, coroutine: Any, name: str) -> None:
        self.world.spawn(coroutine, name)

    async def event(self) -> None:
        while not self._pending() & self.registers["IMR"]:
            self._event.clear()
            await self._event.wait()

    def call_on_event(self, function: Callable[[], None]) -> None:
        async def wait() -> None:
            await self.event()
            function()

        if self._pending() & self.registers["IMR"]:
            function()
        else:
            self.spawn(wait(), "event")

    def call_soon(self, function: Callable[[], None]) -> None:
        self.world.ready.append(function)

    def start(self, accesses: AccessList, ended: Callable[[], None], *, lead_cycles: int = 0) -> None:
        async def work() -> None:
            await carry_out(self, accesses, lead_cycles)
            self._list = None
            if starting:
                self.call_soon(ended)
            else:
                self.world.first(ended)

        assert self._list is None, "one list at a time"
        accesses.check()
        self._list, starting = accesses, True
        self.world.begin(work(), "accesses")
        starting = False

    def interrupt(self) -> None:
        if self._list is not None:
            self._list.interrupted = True

    async def write(self, address: int, data: int) -> None:
        assert address % 4 == 0 and 0 <= data < 1 << 32
        await self.world.sleep(1)
        if address < REGISTER_BASE:
            self._sram_put(address, data.to_bytes(4, "little"))
            return
        name = NAMES[address - REGISTER_BASE]
        fields = unpack(name, data)
        self.registers[name] = data
        action = getattr(self, f"_write_{name}", None)
        if action is not None:
            action(**fields)

    async def read(self, address: int) -> int:
        assert address % 4 == 0
        await self.world.sleep(2)
        if address < REGISTER_BASE:
            return int.from_bytes(self.sram[address - SRAM_BASE :][:4], "little")
        name = NAMES[address - REGISTER_BASE]
        action = getattr(self, f"_read_{name}", None)
        return self.registers[name] if action is None else pack(name, **action())

    def _sram_put(self, address: int, data: bytes) -> None:
        start = address - SRAM_BASE
        assert start >= 0 and start + len(data) <= len(self.sram)
        self.sram[start : start + len(data)] = data

    def _pending(self) -> int:
        bits = dict.fromkeys(self.isr, 1)
        if self.queue or self.words:
            bits["doorbell"] = 1
        if self._offer() is not None:
            bits["dispatch"] = 1
        return pack("ISR", **bits)

    def raise_event(self, name: str | None = None) -> None:
        if name is not None:
            self.isr.add(name)
        self._event.set()

    def _read_ISR(self) -> dict[str, int]:
        return unpack("ISR", self._pending())

    def _write_ISR(self, **bits: int) -> None:
        self.isr -= {name for name, bit in bits.items() if bit}

    def _write_IMR(self, mask: int) -> None:
        self.raise_event()

    def _read_RTC(self) -> dict[str, int]:
        return {"ticks": self.rtc}

    def ticks_ahead(self, ticks: int) -> int:
        """Ticks that a clock value is ahead of the clock, negative if it is behind."""
        half = 1 << self.nic.rtc_bits - 1
        return (ticks - self.rtc + half) % (2 * half) - half

    def _cycle_of(self, ticks: int) -> int:
        """The first cycle in which the clock shows a value ahead of it."""
        now = self.world.cycle * self.nic.rtc_cycles_den // self.nic.rtc_cycles_num
        return -(-(now + self.ticks_ahead(ticks)) * self.nic.rtc_cycles_num // self.nic.rtc_cycles_den)

    def _write_TIMER(self, ticks: int) -> None:
        assert self.ticks_ahead(ticks) > 0, "TIMER armed in the past"

        def ring() -> None:
            if self.registers["TIMER"] == ticks:
                self.raise_event("timer")

        self.world.at(self._cycle_of(ticks), ring)

    def _write_HOST_INTERRUPT(self, vector: int) -> None:
        self.interrupts.set()

    def _write_HOST_DMA_CONTROL(self, bytes: int, to_host: int, busy: int) -> None:
        assert not self.busy["host_dma"] and bytes
        host, sram = self.registers["HOST_DMA_HOST"], self.registers["HOST_DMA_SRAM"]
        assert host % 4 == 0 and sram % 4 == 0
        self.busy["host_dma"] = True

        def done() -> None:
            self.busy["host_dma"] = False
            error = bool(self.bad_addresses & set(range(host, host + bytes)))
            self.registers["HOST_DMA_STATUS"] = int(error)
            if not error and to_host:
                start = sram - SRAM_BASE
                self.memory[host : host + bytes] = np.frombuffer(self.sram[start : start + bytes], np.uint8)
                for watch in self.watches:
                    watch.written(host, bytes)
            elif not error:
                self._sram_put(sram, self.memory[host : host + bytes].tobytes())
            self.raise_event("host_dma")

        beats = -(-bytes * 8 // self.nic.bus_bits)
        bursts = -(-beats // self.nic.burst_beats)
        cycles = self.delays.dma_setup + beats + self.delays.burst * bursts
        self.world.at(self.world.cycle + cycles, done)

    def _write_SEND_CONTROL(self, bytes: int, vl: int, busy: int) -> None:
        assert not self.busy["send"]
        self.busy["send"] = True
        start = self.registers["SEND_ADDRESS"] - SRAM_BASE
        packet = self.sram[start : start + HEADER_BYTES + bytes]
        header = Header.unpack(int.from_bytes(packet[:HEADER_BYTES], "little"))
        probe = header.kind == Kind.PROBE  # it has a route, and no destination
        target = header.route if probe else header.destination
        assert header.length == bytes and target == header.route, "header"

        def sent() -> None:
            self.busy["send"] = False
            self.raise_event("send")

        def arrive() -> None:
            if self.network.cards[self.node] is not self:
                return  # another has taken its place
            if self.network.drop is not None and self.network.drop(header):
                sent()
                return
            self.network.log.append((self.world.cycle, header))
            receiver = self.network.cards[target]
            if self.network.fate is None:
                receiver.inbox.append((packet, sent))
                receiver.take()
                return
            for delay in self.network.fate(header):
                self.world.at(self.world.cycle + delay, lambda: receiver.put(packet))
            sent()

        flits = packet_flits(bytes, self.nic.link) / self.nic.link.rate
        self.world.at(self.world.cycle + self.delays.hop + int(flits), arrive)

    def _write_RECEIVE_CONTROL(self, bytes: int, armed: int) -> None:
        assert self.armed is None and "receive" not in self.isr
        self.armed = self.registers["RECEIVE_ADDRESS"]
        self.take()

    def put(self, packet: bytes) -> None:
        """Take in a copy of a packet that holds nobody up."""
        self.inbox.append((packet, lambda: None))
        self.take()

    def take(self) -> None:
        """Put the next packet into the armed buffer."""
        if self.inbox and self.armed is not None:
            packet, taken = self.inbox.popleft()
            address, self.armed = self.armed, None
            self._sram_put(address, packet)
            taken()
            self.raise_event("receive")

    def _read_DOORBELL_QUEUE(self) -> dict[str, int]:
        if not self.queue:
            return {}
        channel, value = self.queue.popleft()
        self.room.set()
        return {"channel": channel, "value": value & 0x1FFFFF, "valid": 1}

    def _read_DOORBELL_WORD(self) -> dict[str, int]:
        value = self.words.pop(self.registers["DOORBELL_SELECT"], None)
        return {} if value is None else {"value": value, "valid": 1}

    def _selected(self) -> RateFlow:
        return self.flows[self.registers["RATE_SELECT"]]

    def _write_RATE_IDT(self, ticks: int) -> None:
        self._selected().idt = ticks

    def _write_RATE_NDT(self, ticks: int) -> None:
        self._selected().ndt, self._selected().fraction = ticks, Fraction()

    def _read_RATE_NDT(self) -> dict[str, int]:
        return {"ticks": self._selected().ndt}

    def _write_RATE_COMMAND(self, enqueue: int, clear: int, valid: int) -> None:
        flow = self._selected()
        if enqueue and not flow.valid:
            if self.ticks_ahead(flow.ndt) <= 0:
                flow.ndt, flow.fraction = self.rtc, Fraction()
            flow.valid = True
        if clear:
            flow.valid = False
        self._rates_changed()

    def _write_RATE_DISPATCH(self, flow: int, last: int, bytes: int, valid: int) -> None:
        chosen = self.flows[flow]
        assert chosen.valid and self.ticks_ahead(chosen.ndt) <= 0, "dispatched before its time"
        if not chosen.idt:
            chosen.ndt, chosen.fraction = self.rtc, Fraction()
        unit = self.nic.charge_unit_bytes
        assert not bytes or self.nic.rate_charge == "bytes"
        # The NDT is the first tick that is not before the exact time, `fraction` later than that.
        exact = chosen.idt * Fraction(min(bytes, self.nic.mtu_bytes) or unit, unit) - chosen.fraction
        chosen.ndt = (chosen.ndt + ceil(exact)) & (1 << self.nic.rtc_bits) - 1
        chosen.fraction = ceil(exact) - exact
        chosen.valid = not last
        self._rates_changed()

    def _read_RATE_DISPATCH(self) -> dict[str, int]:
        offer = self._offer()
        return {} if offer is None else {"flow": offer, "valid": 1}

    def _offer(self) -> int | None:
        due = [(self.ticks_ahead(f.ndt), n) for n, f in enumerate(self.flows) if f.valid]
        return min(due)[1] if due and min(due)[0] <= 0 else None

    def _rates_changed(self) -> None:
        """Raise the event in the cycle in which the next flow falls due."""
        if self._offer() is not None:
            self.raise_event()
            return
        ahead = [flow.ndt for flow in self.flows if flow.valid]
        if ahead:
            self.world.at(self._cycle_of(min(ahead, key=self.ticks_ahead)), self.raise_event)


@dataclass
class CardWatch:
    """A `Watch` on a card's host memory."""

    start: int
    length: int
    flag: Event
    sleep: Any

    def written(self, start: int, length: int) -> None:
        if start < self.start + self.length and self.start < start + length:
            self.flag.set()

    def touch(self) -> None:
        self.flag.set()

    async def wait(self, look=None, *, after_cycles=0) -> None:
        cycles = None
        while cycles is None:
            await self.flag.wait()
            self.flag.clear()
            if after_cycles:
                await self.sleep(after_cycles)
            cycles = look() if look else 0
        if cycles:
            await self.sleep(cycles)


class Host:
    """The host of a card: `HostBus`."""

    WRITE_CYCLES = 6

    def __init__(self, card: Card) -> None:
        self.card = card
        self.node = card.node
        self.memory = card.memory
        self.sleep, self.flag, self.spawn = card.sleep, card.flag, card.spawn
        self.writes: list[tuple[int, int]] = []

    @property
    def cycle(self) -> int:
        return self.card.cycle

    async def write(self, address: int, data: int) -> None:
        await self.sleep(self.WRITE_CYCLES)
        card = self.card
        self.writes.append((address, data))
        if address < REGISTER_BASE:
            card._sram_put(address, data.to_bytes(4, "little"))
            return
        if address < DOORBELL_BASE:
            if address == REGISTER_BASE + HOST_REGISTERS["HOST_ISR"].offset and data & 1:
                card.interrupts.clear()
            return
        channel = (address - DOORBELL_BASE) // DOORBELL_PAGE_BYTES
        assert 0 <= channel < card.nic.channels
        if card.nic.doorbell == "polled":
            card.words[channel] = data & 0x7FFFFFFF
        else:
            while len(card.queue) >= card.nic.doorbell_queue_entries:
                card.room.clear()
                await card.room.wait()
            card.queue.append((channel, data))
        card.raise_event("doorbell")

    async def write_all(self, writes, *, after_cycles=0) -> None:
        if after_cycles:
            await self.sleep(after_cycles)
        for address, data in writes:
            await self.write(address, data)

    async def read_all(self, addresses, *, after_cycles=0) -> list[int]:
        if after_cycles:
            await self.sleep(after_cycles)
        return [await self.read(address) for address in addresses]

    async def read(self, address: int) -> int:
        await self.sleep(2 * self.WRITE_CYCLES)
        return int.from_bytes(self.card.sram[address - SRAM_BASE :][:4], "little")

    async def interrupt(self) -> None:
        await self.card.interrupts.wait()

    def watch(self, start: int, length: int) -> CardWatch:
        watch = CardWatch(start, length, self.flag(), self.sleep)
        self.card.watches.append(watch)
        return watch
