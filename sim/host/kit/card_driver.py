"""A card's driver, whatever its firmware: words with the card, its resources, its interrupt."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping, Sequence

from lanikai.firmware.lock import Lock
from lanikai.firmware.work_queue.layout import BROKEN_WORDS, COUNT_BITS, MOST_WRITES
from lanikai.firmware.work_queue.program import DRIVER_CHANNEL, DRIVER_OWNER
from lanikai.hdl.config import NicConfig
from lanikai.hdl.nic.nic import HOST_REGISTERS, NIC_REGISTERS
from lanikai.hdl.nic.ports import REGISTER_BASE

from ..bus import HostBus
from ..config import KitConfig, cycles
from ..memory import PageAllocator
from .driver_calls import CompletionSetup
from .errors import KitError, RefusedError, ResourceError
from .pages import OwnerPage
from .regions import Regions

__all__ = ["CardDriver"]

BOOT_TRIES = 100
"""Times that the driver rings before it gives the firmware up, `BOOT_CYCLES` apart. The largest card, of 1024 channels
and 256 regions, boots in less than a quarter of that."""
BOOT_CYCLES = 512


class CardDriver:
    """The part of a driver that every firmware with the driver's mailbox has (`firmware/work_queue/layout.py`).

    - `routes`: node -> source route of every node that can be reached.
    - `kit`: the costs of calls.
    - `mailbox`, `broken`: SRAM addresses of the mailbox, and of the words that name broken completion queues.
    - `pages`: host memory that is not in use.
    - `regions`: registered memory.

    Processes do their later work by their own pages, without the driver. It is called to set up, and by the card's
    interrupt. `start` spawns the interrupt's handler.
    """

    program = "firmware"
    """The class of the program that it needs on the card, for messages."""

    def __init__(
        self,
        bus: HostBus,
        *,
        nic: NicConfig,
        routes: Mapping[int, int],
        kit: KitConfig | None,
        mailbox: int,
        broken: int,
    ) -> None:
        self.bus, self.nic, self.routes = bus, nic, dict(routes)
        self.kit = KitConfig() if kit is None else kit
        self.mailbox, self.broken = mailbox, broken
        self.pages = PageAllocator(bus.memory)
        self.regions = Regions(self)
        self._page = OwnerPage(bus, DRIVER_OWNER)
        self._answer = self.pages.allocate(4)
        self._answered = bus.watch(self._answer.start, 4)
        self._turns = Lock(bus.flag)
        self._asked = 0
        self._free = {
            "owner": deque(range(1, nic.owners)),
            "channel": deque(range(1, nic.channels)),
            "completion queue": deque(range(nic.completion_queues)),
        }
        self._queues: dict[int, CompletionSetup] = {}

    def start(self) -> None:
        """Spawn the interrupt's handler."""
        self.bus.spawn(self._interrupts(), f"driver[{self.bus.node}].interrupts")

    async def spend(self, nanoseconds: int) -> None:
        """Let host CPU time pass."""
        if wait := cycles(nanoseconds, self.nic):
            await self.bus.sleep(wait)

    def take(self, what: str) -> int:
        """A free owner, channel or completion queue. Raises ResourceError."""
        if not self._free[what]:
            raise ResourceError(f"node {self.bus.node}: the card has no {what} left")
        return self._free[what].popleft()

    def give_back(self, what: str, number: int) -> None:
        """Take back what `take` gave: it is given again when all others have been."""
        self._free[what].append(number)

    def free(self, what: str) -> int:
        """The number of owners, channels or completion queues that are free."""
        return len(self._free[what])

    async def set_up(self, *writes: tuple[str, Mapping[str, int]]) -> None:
        """Have the firmware write registers, (name, fields) each, one after the other when the one before is done.
        Raises KitError if the firmware does not answer the doorbell."""
        words = [(NIC_REGISTERS[name].offset, NIC_REGISTERS[name].pack(**fields)) for name, fields in writes]
        async with self._turns:
            for first in range(0, len(words), MOST_WRITES):
                some = words[first : first + MOST_WRITES]
                await self._ask([len(some), self._answer.start, *(word for pair in some for word in pair)])

    async def _ask(self, mailbox: Sequence[int]) -> None:
        """By the holder of `_turns`: put words into the mailbox, ring, and wait for the answer."""
        self._answer.data[:] = 0
        await self.bus.write_all([(self.mailbox + 4 * i, word) for i, word in enumerate(mailbox)])
        await self._ring()
        while not self._answer.data[3] >> 7:
            await self._answered.wait()

    async def _ring(self) -> None:
        self._asked = (self._asked + 1) % (1 << COUNT_BITS)
        for _ in range(BOOT_TRIES):
            try:
                return await self._page.ring(DRIVER_CHANNEL, self._asked)
            except RefusedError:
                await self.bus.sleep(BOOT_CYCLES)  # the firmware has not opened the driver's channel yet
        raise KitError(
            f"node {self.bus.node}: the card's firmware hears no doorbell after {BOOT_TRIES * BOOT_CYCLES} cycles: "
            f"start a {self.program} on it"
        )

    def has_made(self, queue: CompletionSetup) -> bool:
        """Whether it is one of this card's."""
        return self._queues.get(queue.number) is queue

    async def make_queue(self, queue: CompletionSetup) -> None:
        """Make a completion queue on the card, or make it anew: empty.

        One that is there is switched off first. The entries that the card has collected for it are written then, and
        nothing later, before its ring is cleared.
        """
        setup = {
            "queue": queue.number,
            "entries_log2": queue.entries.bit_length() - 1,
            "batch": queue.batch,
            "stall": int(queue.stall),
            "owner": queue.owner,
        }
        if self.has_made(queue):
            await self.set_up(("COMPLETION_SETUP", setup | {"entries_log2": 0}))
        queue.restart()
        self._queues[queue.number] = queue
        await self.set_up(
            ("COMPLETION_RING", {"address": queue.ring.start}),
            ("COMPLETION_LAG", {"cycles": queue.lag_cycles}),
            ("COMPLETION_SETUP", setup),
        )

    async def end_queue(self, queue: CompletionSetup) -> None:
        """Switch a completion queue off, and forget it: the card writes its ring no more."""
        await self.set_up(("COMPLETION_SETUP", {"queue": queue.number, "owner": queue.owner}))
        del self._queues[queue.number]

    async def _interrupts(self) -> None:
        """Serve the card's interrupt: which completion queues are awaited and have an entry (reading acknowledges).

        If there is none, the firmware has something to say (`_notices`).
        """
        status, armed = HOST_REGISTERS["HOST_ISR"], HOST_REGISTERS["HOST_COMPLETION"]
        await self.bus.write(
            REGISTER_BASE + HOST_REGISTERS["HOST_IMR"].offset,
            status.fields["completion"].mask | status.fields["firmware"].mask,
        )
        while True:
            await self.bus.interrupt()
            await self.spend(self.kit.interrupt_ns)
            count = 0
            while True:
                found = armed.unpack(await self.bus.read(REGISTER_BASE + armed.offset))
                if not found["valid"]:
                    break
                count += 1
                # A queue may have been switched off since it raised the interrupt.
                if (queue := self._queues.get(found["queue"])) is not None:
                    queue.wake()
            if not count:
                await self.bus.write(REGISTER_BASE + status.offset, status.pack(firmware=1))
                await self._notices()

    async def _notices(self) -> None:
        """Hear what the firmware has to say beside completions: by default, which queues are broken."""
        await self._bury()

    async def _bury(self) -> None:
        """Tell the consumers of the queues that the firmware says are broken."""
        words = [await self.bus.read(self.broken + 4 * word) for word in range(BROKEN_WORDS)]
        broken = sum(queues << 32 * word for word, queues in enumerate(words))
        for number, queue in self._queues.items():
            if broken >> number & 1 and not queue.dead:
                queue.die()
