"""Stamps of messages that wait, and the places for those that come in."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from lanikai.firmware.via.config import ViaConfig
from lanikai.firmware.via.layout import ViRecord
from lanikai.firmware.via.parallel.messages import Places
from lanikai.firmware.via.parallel.stamps import Stamps
from lanikai.firmware.via.schedulers.registry import SCHEDULERS
from lanikai.firmware.via.state import Vi, ViaContext
from lanikai.hdl.config import NicConfig, preset
from support.firmware.scheduler import World
from support.sim.via_card import NIC

CARD = preset(NicConfig, "tiny", channels=8, doorbell="queue")
RECORD = ViRecord(send_ring=0, receive_ring=0, route=0, node=1, channel=2, vtick=10, receive_vtick=300)


def vi(channel):
    found = Vi(channel)
    found.look(RECORD)
    return found


@pytest.mark.parametrize("received", [False, True])
def test_a_message_in_goes_by_the_rate_of_the_other_end(received):
    stamps, mine = Stamps("virtual_clock", CARD, received=received), vi(3)
    stamps.open(mine, RECORD, 1000)
    interval = RECORD.receive_vtick if received else RECORD.vtick
    assert stamps.add(mine, 2, 1000) == 1000 + 2 * interval
    assert [stamps.take(mine, waiting) for waiting in (2, 1, 0)] == [
        1000 + interval,
        1000 + 2 * interval,
        None,
    ]


def test_stamps_of_flushed_messages_and_of_an_older_connection_are_forgotten():
    stamps, mine = Stamps("virtual_clock", CARD), vi(3)
    stamps.open(mine, RECORD, 0)
    stamps.add(mine, 3, 0)
    assert stamps.take(mine, 1) == 30  # two of three were flushed
    stamps.add(mine, 1, 0)
    mine.reset()
    mine.look(RECORD)
    stamps.open(mine, RECORD, 7)
    assert stamps.take(mine, 1) is None
    assert stamps.add(mine, 1, 7) == 17


def test_the_smallest_stamp_begins_next():
    stamps, vis = Stamps("virtual_clock", CARD), [vi(i) for i in (1, 2)]
    for one, record in zip(vis, (RECORD, ViRecord(**{**vars(RECORD), "vtick": 5})), strict=True):
        stamps.open(one, record, 0)
        stamps.add(one, 1, 0)
    assert stamps.choose(vis) is vis[1]
    assert stamps.choose(vis[:1]) is vis[0]


def test_only_stamps_that_are_times_order_what_comes_in():
    assert [name for name, one in SCHEDULERS.items() if one.timed] == ["virtual_clock"]


@given(
    st.lists(st.integers(0, 60), min_size=1, max_size=20),
    st.integers(0, 255),
    st.integers(1, 4),
    st.booleans(),
)
def test_the_smallest_stamp_has_the_next_place(offsets, origin, count, stamped):
    """Those that find a place free have it as they come; all others go by their stamps, then as they came."""
    world, begun, at_work = World(), [], 0
    places = Places(count, stamped=stamped, bits=8, new_flag=world.flag)
    leaves = [world.flag() for _ in offsets]

    async def message(number):
        nonlocal at_work
        await places.take((origin + offsets[number]) % 256)
        begun.append(number)
        at_work += 1
        assert at_work <= count
        await leaves[number].wait()
        at_work -= 1
        places.give()

    async def main():
        for number in range(len(offsets)):
            world.spawn(message(number), f"message {number}")
        await world.sleep(1)
        for place in range(len(offsets)):
            leaves[begun[place]].set()
            await world.sleep(1)

    world.run(main())
    later = sorted(range(count, len(offsets)), key=lambda i: (offsets[i] if stamped else 0, i))
    assert begun == [*range(min(count, len(offsets))), *later]


@pytest.mark.parametrize("design", ["sequential", "parallel"])
def test_a_queue_of_doorbells_is_served_in_its_order_unless_stamps_are(design):
    def ready(**changes):
        config = ViaConfig(**{"design": design, **changes})
        context = ViaContext(node=0, nic=NIC, config=config, clock=lambda: 0)
        for channel, count in ((2, 2), (1, 1), (2, 1)):
            one = context.vi(channel)
            one.look(RECORD)
            one.send.posted += count
            context.arrived(one, count)
        return [one.channel for one in context.ready]

    assert ready() == [2, 2, 1, 2]
    if design == "parallel":
        assert ready(order="virtual_clock") == [2, 1]
