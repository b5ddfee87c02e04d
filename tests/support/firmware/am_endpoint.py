"""An endpoint of the model of `am_network`: page, record and process."""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING

from lanikai.firmware.am.messages import Fresh, Message
from lanikai.firmware.am.wire import AmHeader, Reason
from lanikai.firmware.am.words import Counts, EndpointRecord

if TYPE_CHECKING:
    from .am_network import Card

__all__ = ["UNKNOWN_FATES", "Endpoint"]

UNKNOWN_FATES = (Reason.UNREACHABLE, Reason.RESTARTED)
"""Reasons of returned messages that may have been delivered, to a card that has died."""


class Endpoint:
    """An endpoint with its page, its record and its process."""

    def __init__(self, card: Card, number: int, tag: int) -> None:
        self.card, self.number, self.tag, self.life = card, number, tag, card.incarnation
        self.alive, self.resident, self.polls = True, False, True
        self.record = EndpointRecord(endpoint=number, tag=tag)
        entries = card.network.config.queue_entries
        self.page: tuple[list[Message | None], list[Message | None]] = ([None] * entries, [None] * entries)
        self.counts = [0, 0, 0, 0]
        self.inbox: tuple[deque[tuple[Fresh | Message, Reason]], ...] = (deque(), deque())
        self.unsent: deque[Message] = deque()
        self.returning: deque[tuple[Message, Reason]] = deque()
        self.outstanding: dict[int, tuple[int, int, int]] = {}
        self.budget = self.loaded = 0
        self.answers: deque[Fresh] = deque()

    def card_lives(self) -> bool:
        """Whether its card has not been started again since."""
        return self.life == self.card.incarnation

    @property
    def busy(self) -> bool:
        """Whether something of it is under way, or a request of it waits for the reply of an endpoint that lives."""
        if not self.alive:
            return False
        held = self.budget or self.inbox[0] or self.inbox[1] or self.unsent or self.returning or self.answers
        posted = any(self.counts[reply] != self.record.taken[reply] for reply in (0, 1))
        return bool(held) or posted or bool(self.open_requests())

    def open_requests(self) -> list[int]:
        """Its requests without a reply, but those that were delivered to an endpoint that died after that."""
        ledger = self.card.network.ledger
        return [
            number
            for number in self.outstanding
            if number not in ledger.delivered or ledger.delivered[number][0].alive
        ]

    # The process.

    def step(self) -> None:
        """The process consumes what has come, answers requests, and posts requests while it has credits."""
        if not self.alive:
            return
        network = self.card.network
        if self.polls:
            for _ in range(network.rng.randint(1, network.appetite)):
                self._consume()
            while self.answers and self._room(True):
                self._reply(self.answers.popleft())
            while self.budget and len(self.outstanding) < network.window and self._room(False):
                if not self._request():
                    break
            self.card.doorbell(self, Counts(**self._counts()))
        network.call(network.rng.randint(10, 60), self.step)

    def _counts(self) -> dict[str, int]:
        names = ("requests_posted", "replies_posted", "requests_consumed", "replies_consumed")
        return dict(zip(names, self.counts, strict=True))

    def _room(self, reply: bool) -> bool:
        open_ = (self.counts[reply] - self.record.taken[reply]) % (1 << 16)
        return open_ < self.card.network.config.queue_entries

    def _consume(self) -> None:
        for reply in (True, False):
            if self.inbox[reply] and (reply or len(self.answers) < self.card.network.appetite):
                found, status = self.inbox[reply].popleft()
                self.counts[2 + reply] += 1
                if isinstance(found, Fresh) and not reply:
                    self.answers.append(found)
                elif isinstance(found, Fresh):
                    self.outstanding.pop(found.header.reference, None)
                elif not found.header.reply:
                    number = found.header.reference
                    # A card may die between its reply and its acknowledgement.
                    unknown = status in UNKNOWN_FATES
                    assert unknown or number in self.outstanding, (
                        f"message {number} was answered and returned"
                    )
                    self.outstanding.pop(number, None)

    def _post(self, reply: bool, node: int, endpoint: int, tag: int, reference: int | None) -> int:
        number = next(self.card.network.numbers)
        header = AmHeader(
            tag=tag,
            source_endpoint=self.number,
            reply=reply,
            words=1,
            reference=number if reference is None else reference,
            reply_tag=self.tag,
        )
        entries = self.card.network.config.queue_entries
        slot = self.counts[reply] % entries
        self.page[reply][slot] = Message(
            node=node, endpoint=endpoint, header=header, words=(number,), context=self.counts[reply]
        )
        self.counts[reply] += 1
        self.card.network.ledger.posted[number] = self
        return number

    def _reply(self, fresh: Fresh) -> None:
        header = fresh.header
        self._post(True, fresh.node, header.source_endpoint, header.reply_tag, header.reference)

    def _request(self) -> bool:
        network = self.card.network
        card = network.rng.choice(network.cards)
        others = [other for other in card.endpoints.values() if other is not self]
        if not others:
            return False
        other = network.rng.choice(others)
        place = (card.node, other.number, other.tag)
        if list(self.outstanding.values()).count(place) >= network.credits:
            return False
        self.budget -= 1
        self.outstanding[self._post(False, *place, None)] = place
        return True
