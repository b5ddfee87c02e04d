"""The NIC's processor: one thing at a time, every step at its cost, asleep while nothing happens.

The state machines of a control program are coroutines that share one `Processor`. `step` gives one of them the
processor for as long as its body runs. First the step's cycles of the cost table pass. Then the body's register and
SRAM accesses add their own bus cycles. Nothing preempts a step, as in the LANai's control program, whose state machines
run to completion (gulati-thesis-2001 4.1).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from types import TracebackType

from . import registers
from .costs import CostTable
from .lock import Lock
from .ports import CardPorts, Flag, ProcessorPort

__all__ = ["EVENT_ORDER", "RECEIVE_EVENTS", "SEND_EVENTS", "Processor", "processors"]

EVENT_ORDER = ("receive", "send", "host_dma", "timer", "doorbell", "dispatch")
"""Event bits of ISR in the order in which simultaneous ones wake their state machines.

The events that hold the wire come first.
"""

SEND_EVENTS = ("send", "host_dma", "timer", "peer", "doorbell", "dispatch")
"""Those events of a processor that sends, on a card with two."""
RECEIVE_EVENTS = ("receive", "host_dma", "timer", "peer", "receive_doorbell")
"""Those events of a processor that receives, on a card with two."""

LEVELS = frozenset({"doorbell", "receive_doorbell", "dispatch"})
"""Event bits that stay up, or come back at once, until their cause is served."""


def processors(card: CardPorts, *costs: CostTable) -> tuple[Processor, ...]:
    """The processors of a card: one with all events of `EVENT_ORDER`, or one that sends and one that receives.

    `costs`: a table for all of them, or one each. Raises ValueError for another number of tables.
    """
    ports = card.processors
    if len(costs) not in (1, len(ports)):
        raise ValueError(f"{len(costs)} cost tables for {len(ports)} processors: one for all, or one each")
    tables = costs * len(ports) if len(costs) == 1 else costs
    sources = (EVENT_ORDER,) if len(ports) == 1 else (SEND_EVENTS, RECEIVE_EVENTS)
    return tuple(
        Processor(port, table, sources=mine) for port, table, mine in zip(ports, tables, sources, strict=True)
    )


class Processor:
    """A processor of one NIC.

    - `port`: its port on the NIC.
    - `costs`: cycles of each named step.
    - `sources`: the bits of ISR for which it has flags.
    - `events[name]`: a flag a source of ISR, set by the idle loop. The coroutine that waits on it clears it.
    - `current`: the step that has the processor, None between steps.
    - `cycles_spent[step]`, `steps_taken[step]`: cycles and steps that were charged, for break-ups.

    Steps are granted in the order of asking. State machines woken by the same interrupt status ask in the order of
    `sources`, so a run is deterministic. Two processors of a card know nothing of each other but through the card: its
    registers, which take turns, `take_lock` and `tell`.
    """

    def __init__(
        self, port: ProcessorPort, costs: CostTable, *, sources: Sequence[str] = EVENT_ORDER
    ) -> None:
        self.port = port
        self.costs = costs
        self.sources = tuple(sources)
        self.events: dict[str, Flag] = {name: port.flag() for name in self.sources}
        self.cycles_spent: Counter[str] = Counter()
        self.steps_taken: Counter[str] = Counter()
        self.current: str | None = None
        self._lock = Lock(port.flag)
        self._enabled: set[str] = set()

    @property
    def waiting(self) -> int:
        """State machines that have asked for the processor and not got it yet."""
        return self._lock.waiting

    def step(self, name: str, times: int = 1) -> _Step:
        """`async with processor.step("name"):` takes the processor, spends `times` the step's cycles, runs the body.

        Raises KeyError for a step that the cost table does not have, before anything waits.
        """
        return _Step(self, name, self.costs.cycles(name) * times)

    async def spend(self, **steps: int) -> None:
        """Inside a step: spend further steps of the table in one go, `name=times`. Raises KeyError."""
        self._check_owned()
        total = 0
        for name, times in steps.items():
            if times:
                total += self._charge(name, self.costs.cycles(name) * times)
        if total:
            self._show(next(name for name, times in reversed(steps.items()) if times))
            await self.port.sleep(total)
            self._show(self.current or "")

    async def read(self, name: str) -> dict[str, int]:
        """Inside a step: fields of a register, 2 cycles."""
        self._check_owned()
        return registers.unpack(name, await self.port.read(registers.address(name)))

    async def write(self, name: str, **fields: int) -> None:
        """Inside a step: write a register's fields, the others zero, 1 cycle."""
        self._check_owned()
        await self.port.write(registers.address(name), registers.pack(name, **fields))

    async def load(self, address: int) -> int:
        """Inside a step: a 32-bit word of SRAM, 2 cycles and its wait."""
        self._check_owned()
        return await self.port.read(address)

    async def store(self, address: int, word: int) -> None:
        """Inside a step: write a 32-bit word of SRAM, 1 cycle and its wait."""
        self._check_owned()
        await self.port.write(address, word)

    async def enable(self, *sources: str) -> None:
        """Inside a step: let these ISR bits raise the event, 1 cycle if that changes anything."""
        await self._set_mask(self._enabled | set(sources))

    async def disable(self, *sources: str) -> None:
        """Inside a step: stop these ISR bits from raising the event, 1 cycle if that changes anything."""
        await self._set_mask(self._enabled - set(sources))

    async def take_lock(self, lock: int) -> None:
        """Inside a step, on a card with two processors: have lock `lock` (0 to 7) to itself.

        Each try takes 3 cycles. The processor does nothing else until then, so the other one should hold the lock for a
        few accesses only.
        """
        while True:
            await self.write("LOCKS", mine=1 << lock)
            if (await self.read("LOCKS"))["mine"] >> lock & 1:
                return

    async def free_lock(self, lock: int) -> None:
        """Inside a step: give back a lock, 1 cycle."""
        await self.write("LOCKS", free=1 << lock)

    async def tell(self, word: int) -> None:
        """Inside a step, on a card with two processors: a word for the other one, and its event `peer`; 1 cycle.

        The other one finds the last such word in PEER.
        """
        await self.write("PEER", word=word)

    async def idle_loop(self) -> None:
        """Sleep until an enabled event, read ISR, clear its bits, wake who waits for them. Never returns.

        A level would wake the loop for as long as it lasts. So the bits of `LEVELS` are masked when seen instead. The
        coroutine that serves them clears them and enables them again.
        """
        while True:
            await self.port.event()
            async with self.step("dispatch"):
                status = await self.read("ISR")
                seen = [name for name in self.sources if status[name] and name in self._enabled]
                clear = {name: 1 for name in seen if name not in LEVELS}
                if clear:
                    await self.write("ISR", **clear)
                await self.disable(*LEVELS.intersection(seen))
            for name in seen:
                self.events[name].set()

    async def _set_mask(self, sources: set[str]) -> None:
        if sources != self._enabled:
            self._enabled = sources
            mask = registers.pack("ISR", **dict.fromkeys(sources, 1))
            await self.write("IMR", mask=mask)

    def _charge(self, name: str, cycles: int) -> int:
        self.cycles_spent[name] += cycles
        self.steps_taken[name] += 1
        return cycles

    def _show(self, step: str) -> None:
        """Tell a port that shows steps in waves."""
        if (show := getattr(self.port, "show_step", None)) is not None:
            show(step)

    def _check_owned(self) -> None:
        if not self._lock.held:
            raise RuntimeError("firmware touched the processor port outside a step")


class _Step:
    """The context manager of `Processor.step`."""

    def __init__(self, processor: Processor, name: str, cycles: int) -> None:
        self._processor = processor
        self._name = name
        self._cycles = cycles

    async def __aenter__(self) -> None:
        await self._processor._lock.acquire()
        self._processor.current = self._name
        self._processor._charge(self._name, self._cycles)
        self._processor._show(self._name)
        if self._cycles:
            await self._processor.port.sleep(self._cycles)

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._processor.current = None
        self._processor._show("")
        self._processor._lock.release()
