"""A card that dies, or is started again, at any step hangs nobody; requests and replies cannot hold each other up."""

from __future__ import annotations

import random

import pytest
from lanikai.firmware.am.config import VirtualNetworkConfig
from lanikai.firmware.am.messages import Fresh, Packet
from lanikai.firmware.am.transport import Transport
from lanikai.firmware.am.wire import Reason
from support.firmware.am_network import Faults, Network
from support.firmware.am_pair import Pair, message

CONFIG = VirtualNetworkConfig(nodes_max=4, frames=2, tries=4, request_channels=2, reply_channels=2)
VICTIM = 1
BOUND_SCANS = 2 * (CONFIG.tries + 1) + 2 * 8
"""Scans after a death until all is over.

All messages that are open come back after two scans for each try, and two more. By then a process may have others to
post to that card: each comes back after two scans, and there are at most 8.
"""


def scenario(seed: int, kind: type[Transport] = Transport) -> Network:
    """3 cards of 3 endpoints and two frames each: paging, requests, replies, refusals."""
    network = Network(
        CONFIG, random.Random(seed), Faults(), cards=3, scan_ticks=100, kind=kind, residence=200
    )
    for card in network.cards:
        for number in range(3):
            card.create(number).budget = 2
    return network


def over(network: Network) -> bool:
    """Whether each process that lives has all that it waits for."""
    return not any(endpoint.busy for card in network.cards for endpoint in card.endpoints.values())


def life(seed: int) -> tuple[int, int]:
    """Steps and ticks of a run in which nobody dies."""
    network = scenario(seed)
    network.run(lambda: over(network), 100_000)
    network.ledger.check()
    return network.steps, network.now


def run_with_death(seed: int, step: int, restart: bool, lasts: int) -> Network:
    """The same run, in which the card `VICTIM` dies before a step; the others end within their bound.

    Without the death it `lasts` so many ticks.
    """
    network = scenario(seed)

    def die() -> None:
        if network.steps == step:
            victim = network.cards[VICTIM]
            victim.die()
            if restart:
                network.call(3 * network.scan_ticks, victim.restart)

    network.before_step = die
    network.run(lambda: network.steps > step and over(network), lasts + BOUND_SCANS * network.scan_ticks)
    network.ledger.check()
    for card in network.cards:
        assert not any(endpoint.open_requests() for endpoint in card.endpoints.values())
    return network


@pytest.mark.parametrize("restart", [False, True], ids=["for good", "and starts again"])
@pytest.mark.parametrize("stride", [9, pytest.param(1, marks=pytest.mark.full)])
def test_a_card_that_dies_at_any_step_hangs_nobody(restart, stride):
    seed = random.SystemRandom().randrange(1 << 32)
    print(f"seed {seed}")
    reasons = set()
    steps, lasts = life(seed)
    for step in range(seed % stride, steps, stride):
        network = run_with_death(seed, step, restart, lasts)
        reasons |= {reason.name for back in network.ledger.returned.values() for reason in back}
    assert {"RESTARTED", "NO_ENDPOINT"} & reasons if restart else reasons == {"UNREACHABLE"}


class SharedChannels(Transport):
    """A mutation: replies go by the channels of requests."""

    def _row(self, node):
        row = super()._row(node)
        row.groups = (row.groups[0], row.groups[0])
        return row


class Busy(Pair):
    """Two endpoints of which neither takes a request while a reply of its own is under way."""

    def __init__(self, kind: type[Transport]) -> None:
        super().__init__(kind=kind)
        self.replies = [0, 0]

    def carry(self, packet: Packet) -> Packet | None:
        card = packet.header.destination
        found = self.cards[card].arrived(packet.header, packet.words)
        if not isinstance(found, Fresh):
            return found
        if not found.header.reply and self.replies[card]:
            return self.cards[card].answer(found, Reason.NO_BUFFER)
        self.replies[1 - card] -= found.header.reply
        self.delivered.append(found.words[0])
        return self.cards[card].answer(found, Reason.DELIVERED)


def both_ways(kind: type[Transport]) -> int:
    """Each card has a reply to send, behind more requests than there are channels. Returns messages delivered."""
    pair = Busy(kind)
    for card in (0, 1):
        pair.replies[card] = 1
        for number in range(6):
            pair.cards[card].offer(message(1 - card, number=number))
    for scan in range(200):
        pair.run(4)
        for card in (0, 1):
            pair.cards[card].scan()
            if scan == 5:
                pair.cards[card].offer(message(1 - card, number=100, reply=True))
    return len(pair.delivered)


def test_requests_that_are_refused_until_a_reply_has_left_are_no_deadlock():
    assert both_ways(Transport) == 2 * 7


def test_with_channels_for_both_they_would_be_one():
    assert both_ways(SharedChannels) == 0


def test_requests_that_fill_all_queues_hold_up_no_reply():
    """Two processes with more requests than the queues hold, each of which takes one at a time."""
    config = VirtualNetworkConfig(nodes_max=2, frames=1, queue_entries=2)
    network = Network(config, random.Random(1), Faults(), cards=2, scan_ticks=100, window=16, appetite=1)
    network.credits = 16
    for card in network.cards:
        card.create(0).budget = 60
    network.run(lambda: over(network), 100_000)
    assert network.ledger.check() == {"delivered": 2 * 2 * 60}
