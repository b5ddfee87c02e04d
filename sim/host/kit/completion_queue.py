"""Reading a completion queue: look, reap, spin, block."""

from __future__ import annotations

from dataclasses import dataclass

from lanikai.hdl.nic.owners.completion_layout import ENTRY_LAYOUT, INDEX_BITS, CompletionStatus

from ...inside.words import Fields
from ..memory import Buffer
from .driver_calls import DriverCalls
from .errors import DeadQueueError, OverrunError
from .pages import OwnerPage

__all__ = ["Completion", "CompletionQueue"]

_ENTRY = Fields(ENTRY_LAYOUT)
MODULUS = 1 << INDEX_BITS


@dataclass(frozen=True)
class Completion:
    """An entry: which `descriptor` of which `work_queue` has ended, how (`status`), with how many `bytes`. `cycle`:
    when the process had it."""

    work_queue: int
    descriptor: int
    status: CompletionStatus
    bytes: int
    cycle: int


class CompletionQueue:
    """Completion queue `number` of `entries` (a power of two), whose ring is `ring`, consumed by the process of `page`.

    Sources: nagar-thesis-2001 4.1.2 (poll or block), 4.2.2. `Process.completion_queue`, which has the other arguments,
    makes it.

    Entries are taken in their order, once each. The consumer tells the card its place by one write for half a ring, or
    before it sleeps. So reaping many at once costs no more writes than one. `interrupts`: how often it slept and was
    woken.

    Raises OverrunError when it comes to the place where entries were lost. Raises DeadQueueError when there is no entry
    and the card has said that it could not write the ring; then only `remake` helps.
    """

    def __init__(
        self,
        driver: DriverCalls,
        page: OwnerPage,
        number: int,
        ring: Buffer,
        *,
        entries: int,
        batch: int = 1,
        lag_cycles: int = 0,
        stall: bool = False,
    ) -> None:
        self._driver, self._page = driver, page
        self._bus = driver.bus
        self.number, self.ring, self.entries, self.owner = number, ring, entries, page.owner
        self.batch, self.lag_cycles, self.stall = batch, lag_cycles, stall
        self._words = ring.data.view("<u8")
        self._woken = self._bus.flag()
        self._watch = self._bus.watch(ring.start, ring.length)
        self.interrupts = 0
        self.restart()

    def restart(self) -> None:
        """Note that it has been made anew: empty, and its ring zeroes."""
        self.ring.data[:] = 0
        self.index = self._told = 0
        self.dead = False

    async def poll(self) -> Completion | None:
        """Look once for the next entry, and return it if there is one. Raises OverrunError."""
        found = await self.reap(1)
        return found[0] if found else None

    async def reap(self, most: int | None = None) -> list[Completion]:
        """All entries that are there, `most` at most, oldest first. Raises OverrunError if the first says so."""
        kit = self._driver.kit
        found: list[Completion] = []
        limit = self.entries if most is None else most
        overrun = False
        if not self._there():
            await self._driver.spend(kit.look_ns)
        while len(found) < limit and self._there():
            await self._driver.spend(kit.entry_ns if found else kit.miss_ns + kit.entry_ns)
            if not self._there():
                break  # the kernel has taken it meanwhile
            entry = self._entry()
            if overrun := entry.status == CompletionStatus.OVERRUN:
                break
            self.index = (self.index + 1) % MODULUS
            found.append(entry)
        if self.dead and not found and not overrun:
            raise DeadQueueError(
                f"node {self._bus.node}: completion queue {self.number} is dead at entry {self.index}: the bus "
                "answered the card's write into its ring with an error; make it anew"
            )
        if overrun and not found:
            raise OverrunError(
                f"node {self._bus.node}: completion queue {self.number} of {self.entries} entries was overrun at entry "
                f"{self.index}: reap it more often, or make it longer"
            )
        if (self.index - self._told) % MODULUS >= self.entries // 2:
            await self._tell()
        return found

    async def spin(self) -> Completion:
        """Look for the next entry in a loop that holds the processor, and return it. Raises OverrunError.

        In the simulation the loop is asleep until something is written. The find then costs what its first look does.
        """
        while (found := await self.poll()) is None:
            await self._watch.wait()
        return found

    async def wait(self) -> Completion:
        """The next entry; the process sleeps in the kernel if there is none. Raises OverrunError.

        The steps are: look; tell the card the place and arm; sleep; look again. An entry that came between the look and
        the arming raises the interrupt at once, a later one when it is there. So none is missed.
        """
        while (found := await self.poll()) is None:
            await self.sleep()
        return found

    async def sleep(self) -> None:
        """Sleep in the kernel until there is an entry, or somebody calls `wake`. Whoever calls this looks before and
        after."""
        self._woken.clear()
        await self._driver.spend(self._driver.kit.system_call_ns)
        await self._tell(arm=True)
        await self._woken.wait()
        self.interrupts += 1
        await self._driver.spend(self._driver.kit.wake_ns)

    def drain(self) -> list[Completion]:
        """All entries that are there, at once and at no cost: the kernel's way to them. It stops at an overrun, which
        the next `reap` tells."""
        found: list[Completion] = []
        while self._there() and (entry := self._entry()).status != CompletionStatus.OVERRUN:
            self.index = (self.index + 1) % MODULUS
            found.append(entry)
        return found

    async def remake(self) -> None:
        """Begin anew, empty, after an overrun or at any time: entries that are told from now on are seen.

        Entries that came before and have not been reaped are forgotten. Entries that come while it is made are dropped
        and counted by the card. It is a system call, and words with the card.
        """
        await self._driver.spend(self._driver.kit.system_call_ns)
        await self._driver.make_queue(self)

    def die(self) -> None:
        """Wake whoever waits, with an error: the card could not write the ring. The driver calls this."""
        self.dead = True
        self._watch.touch()
        self._woken.set()

    def wake(self) -> None:
        """Wake whoever waits: the card's interrupt was for this queue. The driver calls this."""
        self._woken.set()

    def _entry(self) -> Completion:
        """The next entry, which is there."""
        word = int(self._words[self.index % self.entries])
        return Completion(
            work_queue=_ENTRY.get(word, "work_queue"),
            descriptor=_ENTRY.get(word, "descriptor"),
            status=CompletionStatus(_ENTRY.get(word, "status")),
            bytes=_ENTRY.get(word, "bytes"),
            cycle=self._bus.cycle,
        )

    def _there(self) -> bool:
        """Whether the next entry is there: the phases of both of its words are right (docs/nic.md)."""
        word = int(self._words[self.index % self.entries])
        phase = 1 - (self.index // self.entries) % 2
        return _ENTRY.get(word, "phase") == _ENTRY.get(word, "phase_1") == phase

    async def _tell(self, *, arm: bool = False) -> None:
        self._told = self.index
        await self._page.consume(self.number, self.index, arm=arm)
