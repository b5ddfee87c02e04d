"""The race between blocking and arrival (nagar-thesis-2001 6.1.2): no interleaving of the two loses a wake-up.

A process spins, tells its card to interrupt, and sleeps. A message arrives in any cycle from before the spin ends to
after the process sleeps, before or behind what the process does in that cycle. The card looks at its registry so many
cycles later. With the prices of the tests' machine that is every order of their steps.
"""

from __future__ import annotations

import pytest
from lanikai.sim.host.cosched.config import CoschedConfig
from lanikai.sim.host.cosched.endpoint import Message
from lanikai.sim.host.cosched.node import Node
from lanikai.sim.host.cosched.rank import Rank
from lanikai.sim.host.cosched.strategies import STRATEGIES
from lanikai.sim.host.cosched.waiting import SpinBlock
from lanikai.sim.host.cpu import timekeeper
from lanikai.sim.host.cpu.event_time import EventTime
from lanikai.sim.host.cpu.host import Host
from support.sim.cpu_workload import HZ, small_machine

CONFIG = CoschedConfig(spin_us=20, driver_cycles=3, handler_cycles=3, receive_ns=2000, boost_cycles=1)
"""A spin of 20 cycles. Then the ioctl takes 7 + 3, and telling the card 2."""
BEGIN, END = 11, 11 + 20 + 10 + 2 + 30
"""From the dispatch of the process to long after it sleeps."""
LOOKS = (1, 2, 3, 5, 8, 13, 21)
"""Cycles from a message's arrival to the card's look."""
PLACES = (timekeeper.Rank.OUTSIDE, timekeeper.Rank.END)
BLOCKING = [name for name, one in STRATEGIES.items() if one.waiting.blocks]


def hangs(strategy: str, arrival: int, look: int, place: timekeeper.Rank) -> bool:
    """Whether a receive is still waiting long after its message has arrived."""
    time = EventTime(HZ)
    chosen = STRATEGIES[strategy]()
    host = Host(time, small_machine(), chosen.scheduler(900_000))
    node = Node(host, chosen, CONFIG)
    node.check_cycles = look
    endpoint = node.open()

    async def main(process):
        assert await Rank(process, 0, [endpoint]).Recv(0, tag=1) == b"here"

    process = host.start(main, name="receives")
    # The boost comes later than all of this: it would find a process that sleeps beside its message.
    chosen.start(node, 5_000)
    message = Message(0, 1, b"here", 0)
    time.call_at(arrival, place, lambda _: node.card.receive(endpoint, message), 0)
    time.run(lambda: process.ended_at is not None, limit=4_000)
    return process.ended_at is None


def interleavings():
    return [(arrival, look, place) for arrival in range(BEGIN, END) for look in LOOKS for place in PLACES]


@pytest.mark.parametrize("strategy", BLOCKING)
def test_no_interleaving_loses_a_wake_up(strategy) -> None:
    assert [one for one in interleavings() if hangs(strategy, *one)] == []


def test_a_driver_that_does_not_look_again_loses_one(monkeypatch) -> None:
    monkeypatch.setattr(SpinBlock, "still_nothing", staticmethod(lambda endpoint: True))
    lost = [one for one in interleavings() if hangs("sb", *one)]
    # The message comes after the last look of the spin, and the card looks before it has been told.
    assert lost and all(arrival >= 31 and arrival + look <= 43 for arrival, look, _ in lost)


def test_all_blocking_strategies_are_tried() -> None:
    assert set(BLOCKING) == {"sb", "dcs_sb", "pb_sb", "pbf"}
