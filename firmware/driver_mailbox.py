"""The driver's mailbox in the SRAM of a card with owners: register writes that firmware makes for it; completions.

The driver is trusted. It writes its requests into the mailbox, and rings its channel.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Protocol

from lanikai.hdl.config import NicConfig
from lanikai.hdl.nic.ports import REGISTER_BASE

from . import registers
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
        processor = self.processor
        async with processor.step("dispatch"):
            for channel in range(self.nic.channels):
                await processor.spend(set_up=1)
                await processor.write("DOORBELL_CHANNEL", channel=channel)
            for region in range(self.nic.regions):
                await processor.spend(set_up=1)
                await processor.write("REGION", region=region)
            await processor.write("DOORBELL_CHANNEL", channel=DRIVER_CHANNEL, owner=DRIVER_OWNER, open=1)

    async def post(
        self,
        status_address: int | None,
        *,
        channel: int,
        number: int,
        step: str = "complete",
        live: Callable[[], bool] = lambda: True,
        **post: int,
    ) -> None:
        """Post a completion; its status word goes to `status_address`, unless that is None.

        While the unit is busy it waits. Then it posts nothing if it is not `live` any more.
        """
        processor = self.processor
        async with processor.step(step):
            busy = (await processor.read("COMPLETION_POST"))["busy"]
        if busy:
            await self.until_free("COMPLETION_POST")
        if not live():
            return
        async with processor.step(step, 0):
            if status_address is not None:
                await processor.write("COMPLETION_STATUS", address=status_address)
            await processor.write("COMPLETION_OF", work_queue=channel, descriptor=number)
            await processor.write("COMPLETION_POST", write_back=status_address is not None, **post)

    async def until_free(self, name: str) -> None:
        """Wait until this register, which is busy, is not.

        Meanwhile take doorbells now and then, and with them the driver's requests: one of them may end the wait.
        """
        processor = self.processor
        looks = 0
        while True:
            async with processor.step("wait"):
                if not (await processor.read(name))["busy"]:
                    break
            looks += 1
            if looks % PATIENCE == 0:
                self._says(f"waits for {name}: a completion queue that stalls is full")
                await self._meanwhile()
        self._says("")

    async def tell_broken(self) -> None:
        """Completion queues have failed: if the bus broke them, name them in the SRAM, and interrupt the driver.

        An overrun is told in the ring.
        """
        processor = self.processor
        async with processor.step("ended"):
            broken = [
                (await processor.read(name))["queues"]
                for name in ("COMPLETION_BROKEN", "COMPLETION_BROKEN_HIGH")
            ]
            for word, queues in enumerate(broken):
                await processor.store(self.layout.broken + 4 * word, queues)
            if any(now & ~before for now, before in zip(broken, self._broken, strict=True)):
                await processor.write("HOST_INTERRUPT", vector=1)
            self._broken = broken

    async def set_up(self) -> None:
        """Write the words that the driver asks for into registers, each when the one before is done; then answer."""
        processor, at = self.processor, self.layout.mailbox
        async with processor.step("set_up"):
            count, answer = await processor.load(at), await processor.load(at + 4)
        for i in range(count):
            async with processor.step("set_up"):
                offset = await processor.load(at + 8 + 8 * i)
                word = await processor.load(at + 12 + 8 * i)
                await processor.port.write(REGISTER_BASE + offset, word)
            await self._done(*(name for name, register in BUSY.items() if register.offset == offset))
            await self.written(offset, word)
        await self.post(answer, channel=0, number=0)

    async def written(self, offset: int, word: int) -> None:
        """The driver has had a register written; a program that wants to know overrides this."""

    async def _done(self, *names: str) -> None:
        """Wait until these registers are not busy."""
        for name in names:
            async with self.processor.step("wait", 0):
                busy = (await self.processor.read(name))["busy"]
            if busy:
                await self.until_free(name)
        if "COMPLETION_SETUP" in names and any(self._broken):
            await self.tell_broken()  # the queue is whole again, and its next failure is new
