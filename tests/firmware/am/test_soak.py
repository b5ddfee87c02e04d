"""Messages over a network that loses, doubles, delays and reorders packets, while endpoints are paged.

Each message comes once or returns once, never both and none twice; all credits are home at the end.
"""

from __future__ import annotations

import random
from collections import Counter
from functools import partial

import pytest
from lanikai.firmware.am.config import VirtualNetworkConfig
from lanikai.firmware.am.wire import INCARNATIONS, STAMP_MODULUS
from support.firmware.am_endpoint import Endpoint
from support.firmware.am_network import Card, Faults, Network

LOSSY = Faults(drop=0.05, double=0.05, late=0.03)
CARDS, ENDPOINTS = 4, 6
CONFIG = VirtualNetworkConfig(nodes_max=8, frames=3, tries=60)


def soak(requests: int, seed: int, **changes: object) -> Network:
    """`requests` requests among 4 cards of 6 endpoints, twice as many as frames, all answered."""
    print(f"seed {seed}")
    network = Network(
        CONFIG,
        random.Random(seed),
        LOSSY,
        cards=CARDS,
        first_tick=STAMP_MODULUS - 10_000,
        incarnation=INCARNATIONS - 2,
        **changes,
    )
    endpoints = [card.create(number) for card in network.cards for number in range(ENDPOINTS)]
    for place, endpoint in enumerate(endpoints):
        endpoint.budget = requests // len(endpoints) + (place < requests % len(endpoints))
    network.run(
        lambda: not any(endpoint.busy or endpoint.outstanding for endpoint in endpoints),
        10_000 + 200 * requests,
    )
    ends = network.ledger.check()
    assert not any(endpoint.outstanding for endpoint in endpoints), "credits are not home"
    assert ends["delivered"] == 2 * requests, ends
    assert not any(card.transport.pending or card.transport.unacknowledged for card in network.cards)
    assert network.now > 10_000, "stamps have gone across their wrap"
    return network


@pytest.mark.parametrize("requests", [800, pytest.param(50_000, marks=pytest.mark.full)])
def test_each_message_is_delivered_once_while_endpoints_are_paged(requests):
    network = soak(requests, random.SystemRandom().randrange(1 << 32))
    assert sum(card.loads for card in network.cards) > requests / 50


class Trouble:
    """Until all requests are posted: cards are started again, processes die, fall asleep, or have more to send."""

    def __init__(self, network: Network, requests: int) -> None:
        self.network, self.left = network, requests
        self.seen: Counter[str] = Counter()
        for card in network.cards:
            self.fill(card)
        network.call(100, self.step)

    def fill(self, card: Card) -> None:
        """Create the endpoints that a card lacks."""
        for number in range(ENDPOINTS):
            if number not in card.endpoints:
                self.give(card.create(number))

    def give(self, endpoint: Endpoint) -> None:
        """An endpoint has more to send."""
        more = min(self.left, 8)
        endpoint.budget += more
        self.left -= more

    def step(self) -> None:
        """One of them."""
        network, rng = self.network, self.network.rng
        if not self.left:
            return
        network.call(rng.randint(20, 400), self.step)
        card = rng.choice(network.cards)
        if not card.up:
            return
        endpoint = rng.choice(list(card.endpoints.values()))
        what = rng.choices(("restart", "death", "sleep", "more"), (2, 2, 2, 14))[0]
        self.seen[what] += 1
        if what == "restart":
            card.die()
            network.call(rng.randint(1, 5 * network.scan_ticks), partial(self.restart, card))
        elif what == "death":
            card.kill(endpoint)
            self.fill(card)
        elif what == "sleep":
            endpoint.polls = False
            network.call(rng.randint(1, 5000), partial(setattr, endpoint, "polls", True))
        else:
            self.give(endpoint)

    def restart(self, card: Card) -> None:
        """A card is up again."""
        card.restart()
        self.fill(card)

    def over(self) -> bool:
        """Whether all is posted, answered and consumed."""
        return not self.left and all(
            card.up and not any(endpoint.busy for endpoint in card.endpoints.values())
            for card in self.network.cards
        )


@pytest.mark.parametrize("requests", [800, pytest.param(40_000, marks=pytest.mark.full)])
def test_each_message_has_one_fate_while_cards_are_started_again_and_processes_die_and_sleep(requests):
    seed = random.SystemRandom().randrange(1 << 32)
    print(f"seed {seed}")
    network = Network(CONFIG, random.Random(seed), LOSSY, cards=CARDS, incarnation=INCARNATIONS - 1)
    trouble = Trouble(network, requests)
    network.run(trouble.over, 200_000 + 400 * requests)
    ends = network.ledger.check()
    print(dict(ends), dict(trouble.seen), f"{network.now} ticks")
    assert min(trouble.seen.values()) > 0 and len(trouble.seen) == 4
    assert ends["delivered"] > requests / 2 and ends["wrong_tag"] + ends["no_endpoint"] > 0
    assert any(card.incarnation < INCARNATIONS // 2 for card in network.cards), "no incarnation has wrapped"
    assert not any(
        endpoint.open_requests() for card in network.cards for endpoint in card.endpoints.values()
    ), "credits are not home"
