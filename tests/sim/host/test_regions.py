"""The driver's regions beside a card that takes all that it is told: tags, and how often there is a new one."""

from types import SimpleNamespace

import pytest
from lanikai.hdl.nic.owners.protection import KEY_BITS
from lanikai.sim.host.config import KitConfig
from lanikai.sim.host.kit.errors import ResourceError
from lanikai.sim.host.kit.regions import Regions

NUMBERS = 3
BUFFER = SimpleNamespace(start=0x10000, length=64, pages=[SimpleNamespace(start=0x4000)])
"""A buffer of a page."""


class Driver:
    """A driver as `Driver`, as far as regions go: a card whose known keys stand in `card`."""

    def __init__(self):
        self.kit, self.nic = KitConfig(), SimpleNamespace(regions=NUMBERS)
        self.bus = SimpleNamespace(node=0)
        self.pages = SimpleNamespace(allocate=lambda size: self, release=lambda table: None)
        self.start, self.card = 0, {}

    def write(self, content, offset):
        """Do nothing: a page table takes anything."""

    async def spend(self, nanoseconds):
        """Do nothing: time is no matter here."""

    async def set_up(self, *writes):
        for name, fields in writes:
            if name == "REGION":
                self.card[fields["region"]] = (
                    (fields["owner"], fields["key"]) if fields.get("valid") else None
                )


def run(coroutine):
    """The result of a coroutine that waits for nothing."""
    with pytest.raises(StopIteration) as ended:
        coroutine.send(None)
    return ended.value.value


def test_an_old_tag_of_a_process_is_never_good_again():
    """A process registers and gives back as often as there are tags: all are different, and then there is none.

    (A key once came back after 256 registrations of its number.) Another process is not touched by that.
    """
    driver = Driver()
    regions = Regions(driver)
    held = run(regions.register(2, BUFFER))
    most = (NUMBERS - 1) << KEY_BITS
    tags = set()
    for count in range(most):
        region = run(regions.register(1, BUFFER))
        assert region.tag not in tags, count
        assert driver.card[region.number] == (1, region.key)
        tags.add(region.tag)
        run(regions.deregister(region))
        assert driver.card[region.number] is None
    with pytest.raises(ResourceError) as error:
        run(regions.register(1, BUFFER))
    assert str(error.value) == (
        f"node 0, owner 1: it has had every tag of the memory regions that are free, {most} registrations in all: keep "
        "regions registered, as an old tag must never be good again"
    )
    mine = [held.tag]
    for _ in range(NUMBERS - 1):
        mine.append(run(regions.register(2, BUFFER)).tag)
    assert len(set(mine)) == NUMBERS
    with pytest.raises(ResourceError, match="all 3 memory regions of the card are in use: deregister one"):
        run(regions.register(2, BUFFER))
    # A region that the other process gives back has new tags for this one.
    run(regions.deregister(held))
    assert run(regions.register(1, BUFFER)).tag not in tags
