"""A network that keeps every packet and brings any of them at any time, as often as it likes.

Nothing here is likely, so that a few messages meet what a soak would meet after years. Messages are attempts: one that
was withdrawn is another one when it is offered again, and no copy of the first may be delivered any more.
"""

from __future__ import annotations

import random
from collections import Counter

import pytest
from lanikai.firmware.am.config import VirtualNetworkConfig
from lanikai.firmware.am.messages import Ending, Fresh, Packet
from lanikai.firmware.am.transport import Transport
from lanikai.firmware.am.wire import INCARNATIONS, Reason, next_incarnation
from support.firmware.am_pair import message

CONFIG = VirtualNetworkConfig(nodes_max=2, request_channels=2, reply_channels=1, tries=2)
SOURCES, DESTINATIONS = 2, 2
VERDICTS = [Reason.DELIVERED] * 5 + [Reason.NO_BUFFER] * 3 + [Reason.NOT_RESIDENT, Reason.WRONG_TAG]


class Adversary:
    """Two cards, and all packets that were ever sent."""

    def __init__(self, rng: random.Random, *, restarts: bool) -> None:
        self.rng, self.restarts = rng, restarts
        self.lives = [INCARNATIONS - 1, INCARNATIONS - 3]
        self.cards = [self.new(node) for node in (0, 1)]
        self.bag: list[Packet] = []
        self.fresh: list[tuple[Transport, Fresh]] = []
        self.leaving: set[tuple[int, int]] = set()
        self.open: dict[int, int] = {}
        self.delivered: Counter[int] = Counter()
        self.life: dict[int, Transport] = {}
        self.ends: dict[int, Reason | Ending] = {}
        self.numbers = self.now = 0

    def new(self, node: int) -> Transport:
        """A card in its present life."""
        return Transport(CONFIG, node=node, incarnation=self.lives[node])

    def offer(self) -> None:
        """A card has another message to send."""
        node, source = self.rng.randrange(2), self.rng.randrange(SOURCES)
        if (node, source) in self.leaving or self.cards[node].open(source) > 4:
            return
        self.numbers += 1
        self.open[self.numbers] = node
        reply, endpoint = self.rng.random() < 0.3, self.rng.randrange(DESTINATIONS)
        self.cards[node].offer(
            message(1 - node, source=source, endpoint=endpoint, number=self.numbers, reply=reply)
        )

    def send(self, most: int = 3) -> None:
        """A card sends some of what is due."""
        card = self.rng.choice(self.cards)
        for _ in range(most):
            packet = card.next_packet(self.now)
            if packet is not None:
                self.bag.append(packet)

    def bring(self) -> None:
        """Any packet comes; late ones are as likely as the last."""
        if self.bag:
            last = self.rng.random() < 0.7
            self.arrive(self.rng.choice(self.bag[-6:] if last else self.bag))

    def arrive(self, packet: Packet) -> None:
        card = self.cards[packet.header.destination]
        found = card.arrived(packet.header, packet.words)
        if isinstance(found, Fresh):
            self.fresh.append((card, found))
        elif found is not None:
            self.bag.append(found)

    def answer(self, verdicts: list[Reason] = VERDICTS) -> None:
        """A message that has come is delivered, or refused."""
        if not self.fresh:
            return
        card, fresh = self.fresh.pop(self.rng.randrange(len(self.fresh)))
        if card not in self.cards:
            return  # it died meanwhile
        reason = self.rng.choice(verdicts)
        if reason is Reason.DELIVERED:
            number = fresh.words[0]
            self.delivered[number] += 1
            assert self.delivered[number] == 1, f"message {number} came twice"
            end = self.ends.get(number)
            assert end in (None, Reason.UNREACHABLE), f"message {number} came after {end}"
            self.life[number] = card
        reply = card.answer(fresh, reason)
        if reply is not None:
            self.bag.append(reply)

    def scan(self) -> None:
        """A card's timer."""
        self.rng.choice(self.cards).scan()

    def leave(self) -> None:
        """An endpoint is to be quiet, or may send again; or its process dies."""
        node, source = self.rng.randrange(2), self.rng.randrange(SOURCES)
        card = self.cards[node]
        if self.rng.random() < 0.1:
            self.outcomes()
            card.abandon(source)
            self.leaving.discard((node, source))
        elif (node, source) not in self.leaving:
            card.quiesce(source)
            self.leaving.add((node, source))
        elif card.quiet(source):
            card.resume(source)
            self.leaving.discard((node, source))

    def restart(self) -> None:
        """A card is started again; its messages have no end any more."""
        if not self.restarts:
            return
        node = self.rng.randrange(2)
        self.outcomes()
        self.lives[node] = next_incarnation(self.lives[node])
        self.cards[node] = self.new(node)
        self.open = {number: owner for number, owner in self.open.items() if owner != node}
        self.leaving = {(owner, source) for owner, source in self.leaving if owner != node}

    def outcomes(self) -> None:
        """Take what has ended, and hold it against what was delivered."""
        for card in self.cards:
            while (outcome := card.next_outcome()) is not None:
                number = outcome.message.words[0]
                assert number not in self.ends, f"message {number} has ended twice"
                if outcome.ending is Ending.DELIVERED:
                    assert self.delivered[number], f"message {number} did not come"
                    self.ends[number] = outcome.ending
                else:
                    self.ends[number] = outcome.reason
                    if outcome.reason is Reason.RESTARTED:
                        assert self.life.get(number) not in self.cards, (
                            f"message {number} came to a card that lives"
                        )
                    elif outcome.reason is not Reason.UNREACHABLE:
                        assert not self.delivered[number], f"message {number} came, and ended as {outcome}"
                self.open.pop(number, None)

    def step(self) -> None:
        """Something happens."""
        self.now += 1
        what = self.rng.choices(
            (self.offer, self.send, self.bring, self.answer, self.scan, self.leave, self.restart),
            (15, 30, 60, 30, 8, 4, 0.3),
        )[0]
        what()
        self.outcomes()

    def heal(self) -> None:
        """From now on each packet comes once, and all is delivered: all messages end within their bounds."""
        for _ in range(2 * (CONFIG.tries + 2) + 40):
            for _ in range(3):
                sent = len(self.bag)
                while any(card.ready for card in self.cards):
                    self.send()
                for packet in self.bag[sent:]:
                    self.arrive(packet)
                while self.fresh:
                    self.answer([Reason.DELIVERED])
                for packet in self.bag[sent:]:
                    if packet.header.kind:
                        self.arrive(packet)
            for card in self.cards:
                card.scan()
            self.outcomes()


def explore(base: int, runs: int, restarts: bool) -> Counter[object]:
    """`runs` random runs of 800 steps, healed then. Returns how often each end was; raises AssertionError."""
    ends: Counter[object] = Counter()
    for seed in range(base, base + runs):
        print(f"seed {seed}")
        world = Adversary(random.Random(seed), restarts=restarts)
        for _ in range(800):
            world.step()
        world.heal()
        assert not any(card.pending for card in world.cards), [card.state() for card in world.cards]
        ends += Counter(world.ends.values())
    return ends


@pytest.mark.parametrize("restarts", [False, True])
@pytest.mark.parametrize("runs", [25, pytest.param(1500, marks=pytest.mark.full)])
def test_whatever_comes_whenever_each_message_has_one_fate(restarts, runs):
    ends = explore(random.SystemRandom().randrange(1 << 32), runs, restarts)
    assert ends[Ending.DELIVERED] and ends[Reason.WRONG_TAG] and ends[Reason.VOID], ends
    assert bool(ends[Reason.RESTARTED]) is restarts
