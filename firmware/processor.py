"""The NIC's processor: one thing at a time, every step at its cost, asleep while nothing happens.

The state machines of a control program are coroutines that share one `Processor`. `step` gives one of them the
processor for as long as its body runs. First the step's cycles of the cost table pass. Then the body's register and
SRAM accesses add their own bus cycles. Nothing preempts a step, as in the LANai's control program, whose state machines
run to completion (gulati-thesis-2001 4.1).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence

from . import registers
from .accesses import AccessList, Reading
from .costs import CostTable
from .lock import Lock
from .notice import Notice, PortEvent
from .ports import CardPorts, ProcessorPort
from .step import Accesses, Part, Step

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
    - `woken_cycle`: when the idle loop last began to look at ISR.
    - `labels`: names for steps in waves, where they are not the steps' own. `watch` is called with each step as it
      begins, and with an empty text at its end.
    - `current`: the step that has the processor, None between steps.
    - `cycles_spent[step]`, `steps_taken[step]`: cycles and steps that were charged, for break-ups.

    Steps are granted in the order of asking, urgent ones first. State machines woken by the same interrupt status ask
    in the order of `sources`, so a run is deterministic. Two processors of a card know nothing of each other but
    through the card: its registers, which take turns, `take_lock` and `tell`.
    """

    def __init__(
        self, port: ProcessorPort, costs: CostTable, *, sources: Sequence[str] = EVENT_ORDER
    ) -> None:
        self.port = port
        self.costs = costs
        self.sources = tuple(sources)
        self.events = {name: Notice(port) for name in self.sources}
        self.cycles_spent: Counter[str] = Counter()
        self.steps_taken: Counter[str] = Counter()
        self.current: str | None = None
        self.lock = Lock(port.flag, asked=port.interrupt)
        self.woken_cycle = 0
        self.labels: Mapping[str, str] = {}
        self.watch: Callable[[str], None] | None = None
        self._enabled: frozenset[str] = frozenset()
        self._bits = [(name, registers.pack("ISR", **{name: 1})) for name in self.sources]
        self._looks: dict[frozenset[str], tuple[AccessList, Reading]] = {}
        self._status = AccessList().read("ISR")
        self._show: Callable[[str], None] | None = getattr(port, "show_step", None)

    @property
    def waiting(self) -> int:
        """State machines that have asked for the processor and not got it yet."""
        return self.lock.waiting

    def step(
        self,
        name: str,
        times: int = 1,
        *,
        accesses: Accesses | None = None,
        ahead: bool = False,
        after: Notice | PortEvent | None = None,
        came: Callable[[], None] | None = None,
        holding: Lock | None = None,
        urgent: Callable[[], bool] | None = None,
    ) -> Step:
        """`async with processor.step("name"):` takes the processor, spends `times` the step's cycles, runs the body.

        - `times`: 0 for the further accesses of a step that has been charged already.
        - `accesses`: a list that is carried out before the body. A function that returns one is called when the step's
          cycles are over. With `ahead` it is called when the step has the processor, which saves a wake-up. Nothing
          that it looks at may change while the step spends its cycles.
        - `after`: wait for this before all else, and clear it. `came` is called then.
        - `holding`: take this lock before the processor. Who has called gives it back.
        - `urgent`: asked when it would have to wait, whether it goes before all steps that wait for the processor.

        The coroutine wakes once, when the body can begin. Raises KeyError for a step that the cost table does not have,
        before anything waits.
        """
        return Step(self, Part(self, name, times, accesses, ahead, after, came, holding, urgent))

    async def run(
        self, name: str, accesses: Accesses, *, after: Notice | None = None, until: Notice | None = None
    ) -> None:
        """A step that is nothing but its accesses, which begins `after` that has come, if it is given.

        With `until` it returns when that has come, too. One wake-up. Raises KeyError as `step` does.
        """
        step = self.step(name, accesses=accesses, after=after)
        async with step if until is None else step.until(until):
            pass

    async def carry_out(self, accesses: AccessList) -> None:
        """Inside a step: carry out a list of accesses without marks. One wake-up."""
        self._check_owned()
        if accesses.has_marks:
            raise ValueError("a list with marks is one of several steps: `step` carries it out")
        accesses.rewind()
        if accesses.program:
            ended = self.port.flag()
            self.port.start(accesses, ended.set)
            await ended.wait()
        for name, cycles in accesses.charges(self.current or ""):
            self.charge(name, cycles)

    def pay(self, accesses: AccessList, **steps: int) -> None:
        """Write into a list that further steps of the table are spent, `name=times`. They are charged if the list comes
        to them. Raises KeyError."""
        for name, times in steps.items():
            if times:
                accesses.pay(name, self.costs.cycles(name) * times)

    async def spend(self, **steps: int) -> None:
        """Inside a step: spend further steps of the table in one go, `name=times`. Raises KeyError."""
        self._check_owned()
        total = 0
        for name, times in steps.items():
            if times:
                total += self.charge(name, self.costs.cycles(name) * times)
        if total:
            self.show(next(name for name, times in reversed(steps.items()) if times))
            await self.port.sleep(total)
            self.show(self.current or "")

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
        await self._set_mask(self._enabled.union(sources))

    async def disable(self, *sources: str) -> None:
        """Inside a step: stop these ISR bits from raising the event, 1 cycle if that changes anything."""
        await self._set_mask(self._enabled.difference(sources))

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

    async def idle_loop(self, *, urgent: Callable[[], bool] | None = None) -> None:
        """Sleep until an enabled event, read ISR, clear its bits, wake who waits for them. Never returns.

        `urgent`: whether it looks before all steps that wait, as an event loop does between its handlers.

        A level would wake the loop for as long as it lasts. So the bits of `LEVELS` are masked when seen instead. The
        coroutine that serves them clears them and enables them again.
        """
        event = PortEvent(self.port)
        while True:
            async with self.step(
                "dispatch", accesses=self._look_at_events, ahead=True, after=event, urgent=urgent
            ):
                status, enabled = self._status.get(), self._enabled
                seen = [name for name, bit in self._bits if status & bit and name in enabled]
                self._enabled = enabled.difference(LEVELS.intersection(seen))
            for name in seen:
                self.events[name].set()

    def _look_at_events(self) -> AccessList:
        """Read ISR; clear those that have come, and mask the levels among them, if there are any."""
        self.woken_cycle = self.port.cycle
        if self._enabled not in self._looks:
            self._looks[self._enabled] = self._write_look()
        accesses, self._status = self._looks[self._enabled]
        return accesses

    def _write_look(self) -> tuple[AccessList, Reading]:
        accesses = AccessList()
        status = accesses.read("ISR")
        mine = self._enabled.intersection(self.sources)
        enabled, levels = (
            registers.pack("ISR", **dict.fromkeys(names, 1)) for names in (mine, mine & LEVELS)
        )
        if events := enabled & ~levels:
            accesses.skip_if(status, mask=events, value=0, records=1)
            accesses.copy(status, "ISR", mask=events)
        if levels:
            everything = registers.pack("ISR", **dict.fromkeys(self._enabled, 1))
            accesses.skip_if(status, mask=levels, value=0, records=1)
            accesses.copy(status, "IMR", mask=levels, flip=everything)
        return accesses, status

    async def _set_mask(self, sources: frozenset[str]) -> None:
        if sources != self._enabled:
            self._enabled = sources
            mask = registers.pack("ISR", **dict.fromkeys(sources, 1))
            await self.write("IMR", mask=mask)

    def charge(self, name: str, cycles: int) -> int:
        """Count a step of so many cycles, which are returned."""
        self.cycles_spent[name] += cycles
        self.steps_taken[name] += 1
        return cycles

    def show(self, step: str) -> None:
        """Tell a port that shows steps in waves; an empty name is none."""
        if self._show is not None:
            self._show(self.labels.get(step, step))
        if self.watch is not None:
            self.watch(step)

    def _check_owned(self) -> None:
        if not self.lock.held:
            raise RuntimeError("firmware touched the processor port outside a step")
