"""The driver's mailbox in the SRAM of a card with owners: register writes that firmware makes for it; completions.

The driver is trusted. It writes its requests into the mailbox, and rings its channel.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Protocol

from lanikai.hdl.config import NicConfig
from lanikai.hdl.nic.ports import REGISTER_BASE

from . import registers
from .accesses import LONGEST, AccessList, Why
from .completion_post import CompletionPost
from .processor import Processor

__all__ = ["BROKEN_WORDS", "DRIVER_CHANNEL", "DRIVER_OWNER", "MOST_WRITES", "DriverMailbox", "MailboxLayout"]

DRIVER_CHANNEL = DRIVER_OWNER = 0
"""The driver's channel and page: its doorbell says that there is something in the mailbox."""
MOST_WRITES = 15
"""Most register writes that the driver asks for at once."""
BROKEN_WORDS = 2
"""Number of words with a bit for each completion queue that the bus has broken.

They are COMPLETION_BROKEN and COMPLETION_BROKEN_HIGH.
"""
PATIENCE = 16
"""Looks at a unit that is busy before the firmware takes doorbells and looks again.

They take longer than the bus needs, so the unit waits for somebody. That one may have to ring, or to write on the bus
behind a doorbell that waits.
"""
BUSY = {name: reg for name, reg in registers.NIC_REGISTERS.items() if "busy" in reg.fields}


class MailboxLayout(Protocol):
    """The places in the SRAM."""

    @property
    def mailbox(self) -> int:
        """The driver's mailbox."""

    @property
    def broken(self) -> int:
        """The completion queues that are broken."""


class DriverMailbox:
    """The driver's requests on the card of `node`, and completions.

    - `meanwhile`: takes doorbells, and with them the driver's requests. It is called now and then while a unit is busy.
    - `says(text)`: called with what is waited for when that takes long, and with "" when it is over.

    It spends the steps `set_up`, `wait`, `complete`, `ended` and `dispatch` of the processor's cost table.
    """

    def __init__(
        self,
        processor: Processor,
        nic: NicConfig,
        layout: MailboxLayout,
        *,
        meanwhile: Callable[[], Awaitable[None]],
        says: Callable[[str], None],
    ) -> None:
        self.processor, self.nic, self.layout = processor, nic, layout
        self._meanwhile, self._says = meanwhile, says
        self._broken = [0] * BROKEN_WORDS

    async def boot(self) -> None:
        """Close all channels and regions, which a reset of the card leaves as they are; then open the driver's."""
        processor, most = self.processor, LONGEST // 2
        writes = [("DOORBELL_CHANNEL", {"channel": channel}) for channel in range(self.nic.channels)]
        writes += [("REGION", {"region": region}) for region in range(self.nic.regions)]
        async with processor.step("dispatch"):
            for start in range(0, len(writes), most):
                accesses = AccessList()
                for name, fields in writes[start : start + most]:
                    processor.pay(accesses, set_up=1)
                    accesses.write(name, **fields)
                await processor.carry_out(accesses)
            await processor.write("DOORBELL_CHANNEL", channel=DRIVER_CHANNEL, owner=DRIVER_OWNER, open=1)

    async def post(
        self,
        status_address: int | None,
        *,
        channel: int,
        number: int,
        step: str = "complete",
        live: Callable[[], bool] | None = None,
        **post: int,
    ) -> None:
        """Post a completion; its status word goes to `status_address`, unless that is None.

        While the unit is busy it waits. Then it posts nothing if it is not `live` any more.
        """
        one = CompletionPost(status_address, channel=channel, number=number, fields=post, step=step)
        accesses = AccessList()
        one.look(self.processor, accesses)
        if live is None:
            accesses.mark(0)
            one.write(accesses)
        async with self.processor.step(step, 0, accesses=accesses):
            pass
        if one.held:
            await self.until_free("COMPLETION_POST")
        if one.held or live is not None:
            await self.write(one, step, live)

    async def write(self, post: CompletionPost, step: str, live: Callable[[], bool] | None = None) -> None:
        """Post to a unit that is not busy, if it is `live`."""
        if live is None or live():
            accesses = AccessList()
            post.write(accesses)
            async with self.processor.step(step, 0, accesses=accesses):
                pass

    async def until_free(self, name: str) -> None:
        """Wait until this register, which is busy, is not.

        Meanwhile take doorbells now and then, and with them the driver's requests: one of them may end the wait.
        """
        processor, busy = self.processor, registers.pack(name, busy=1)
        accesses = AccessList()
        for look in range(PATIENCE):
            if look:
                accesses.mark(processor.costs.cycles("wait"))
            accesses.stop_if(accesses.read(name), mask=busy, value=0)
        while True:
            async with processor.step("wait", accesses=accesses):
                pass
            if accesses.why is Why.STOPPED:
                break
            self._says(f"waits for {name}: a completion queue that stalls is full")
            await self._meanwhile()
        self._says("")

    async def tell_broken(self) -> None:
        """Completion queues have failed: if the bus broke them, name them in the SRAM, and interrupt the driver.

        An overrun is told in the ring.
        """
        accesses, told = AccessList(), AccessList()
        words = [accesses.read(name) for name in ("COMPLETION_BROKEN", "COMPLETION_BROKEN_HIGH")]
        async with self.processor.step("ended", accesses=accesses):
            broken = [word["queues"] for word in words]
            told.store(self.layout.broken, *broken)
            if any(now & ~before for now, before in zip(broken, self._broken, strict=True)):
                told.write("HOST_INTERRUPT", vector=1)
            await self.processor.carry_out(told)
            self._broken = broken

    async def set_up(self) -> None:
        """Write the words that the driver asks for into registers, each when the one before is done; then answer."""
        processor, at = self.processor, self.layout.mailbox
        accesses = AccessList()
        count, answer = accesses.load(at, 2)
        async with processor.step("set_up", accesses=accesses):
            pass
        for place in range(at + 8, at + 8 + 8 * count.get(), 8):
            accesses, write = AccessList(), AccessList()
            offset, word = accesses.load(place, 2)
            async with processor.step("set_up", accesses=accesses):
                write.store(REGISTER_BASE + offset.get(), word.get())
                await processor.carry_out(write)
            await self._done(*(name for name, register in BUSY.items() if register.offset == offset.get()))
            await self.written(offset.get(), word.get())
        await self.post(answer.get(), channel=0, number=0)

    async def written(self, offset: int, word: int) -> None:
        """The driver has had a register written; a program that wants to know overrides this."""

    async def _done(self, *names: str) -> None:
        """Wait until these registers are not busy."""
        for name in names:
            accesses = AccessList()
            state = accesses.read(name)
            async with self.processor.step("wait", 0, accesses=accesses):
                pass
            if state["busy"]:
                await self.until_free(name)
        if "COMPLETION_SETUP" in names and any(self._broken):
            await self.tell_broken()  # the queue is whole again, and its next failure is new
