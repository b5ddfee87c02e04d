"""The lock: one holder, first come first served, never free between two holders."""

from __future__ import annotations

import pytest
from lanikai.firmware.lock import Lock
from support.firmware.scheduler import World


def test_holders_follow_in_the_order_of_asking() -> None:
    world = World()
    lock = Lock(world.flag)
    order: list[tuple[int, int]] = []

    async def holder(number: int, asks: int) -> None:
        await world.sleep(asks)
        async with lock:
            order.append((number, world.cycle))
            assert lock.held
            await world.sleep(10)

    async def main() -> None:
        await world.gather(holder(0, 1), holder(1, 3), holder(2, 2))

    world.run(main())
    assert order == [(0, 1), (2, 11), (1, 21)]
    assert not lock.held and lock.waiting == 0


def test_it_is_given_back_when_its_holder_fails() -> None:
    world = World()
    lock = Lock(world.flag)

    async def main() -> None:
        with pytest.raises(ValueError, match="broken"):
            async with lock:
                raise ValueError("broken")
        await lock.acquire()
        lock.release()
        with pytest.raises(RuntimeError, match=r"^a lock was released that nobody holds$"):
            lock.release()

    world.run(main())
