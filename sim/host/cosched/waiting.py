"""The three ways to wait for a message (nagar-thesis-2001 table 6.1, columns)."""

from __future__ import annotations

from typing import cast

from ..cpu.time_sharing import TimeSharing
from .endpoint import Endpoint
from .strategy import Waiting

__all__ = ["BusyWait", "SpinBlock", "SpinYield"]


async def spin_a_while(endpoint: Endpoint) -> bool:
    """Spin for what is left of the spin time of this receive. Returns whether a message has arrived."""
    process = endpoint.process
    assert process is not None
    if endpoint.spin_left <= 0:
        return False
    before = process.used
    found = await process.spin(endpoint.arrived, endpoint.spin_left)
    endpoint.spin_left -= process.used - before
    return bool(found)


class BusyWait(Waiting):
    """Spin until a message arrives."""

    async def wait(self, endpoint: Endpoint) -> None:
        """Return when one has arrived."""
        assert endpoint.process is not None
        await endpoint.process.spin(endpoint.arrived)


class SpinBlock(Waiting):
    """Spin for a while, then sleep until the card's interrupt (6.1.2).

    The ioctl tells the card to interrupt, and then sleeps on a semaphore. A message that arrives in between finds
    nothing registered, and nobody would wake the process. So the ioctl looks at the queue once more, after the card has
    been told. A message that arrives after that look raises an interrupt, and the semaphore keeps it.
    """

    blocks = True

    async def wait(self, endpoint: Endpoint) -> None:
        """Return when one has arrived, or after a wake-up that was late."""
        if await spin_a_while(endpoint):
            return
        process, card = endpoint.process, endpoint.node.card
        assert process is not None
        endpoint.semaphore.clear()
        await process.system_call(endpoint.node.config.driver_cycles)
        await process.write_card()
        card.registered.add(endpoint)
        if self.still_nothing(endpoint):
            await process.block(endpoint.semaphore)
        card.registered.discard(endpoint)

    @staticmethod
    def still_nothing(endpoint: Endpoint) -> bool:
        """Whether no message has arrived while the card was told."""
        return not endpoint.arrived.is_set


class SpinYield(Waiting):
    """Spin for a while, then become less urgent than everybody else, make another process urgent, and spin on (6.1.7).

    It does so once in a receive: "care is taken so that the priority is not lowered twice for the same expected
    message".
    """

    async def wait(self, endpoint: Endpoint) -> None:
        """Return when one has arrived."""
        if await spin_a_while(endpoint):
            return
        process = endpoint.process
        assert process is not None
        if not endpoint.lowered:
            await process.system_call(endpoint.node.config.driver_cycles)
            endpoint.lowered = True
            self.give_way(endpoint)
        await process.spin(endpoint.arrived)

    @staticmethod
    def give_way(endpoint: Endpoint) -> None:
        """Lower the process to one level below the lowest of the node, and boost one that has a message pending."""
        node, process = endpoint.node, endpoint.process
        assert process is not None
        scheduler = cast(TimeSharing, node.host.scheduler)
        lowest = min(one.level for one in node.host.processes)
        scheduler.lower(process, max(0, lowest - 1))
        for other in node.endpoints:
            if other is not endpoint and other.pending and other.process is not None:
                scheduler.boost(other.process)
                break
