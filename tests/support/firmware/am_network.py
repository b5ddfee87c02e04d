"""A network of cards with transports, endpoints and processes, in plain Python: packets get lost, come twice and late.

The model is as small as the protocol's surroundings allow: processes post requests with credits and answer those that
come, firmware carries doorbell words, drivers page endpoints. A `Ledger` holds what became of each message.
"""

from __future__ import annotations

import heapq
import random
from collections import Counter, deque
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from itertools import count

from lanikai.firmware.am.config import VirtualNetworkConfig
from lanikai.firmware.am.messages import Ending, Fresh, Message, Packet
from lanikai.firmware.am.transport import Transport
from lanikai.firmware.am.wire import Reason, next_incarnation
from lanikai.firmware.am.words import Counts

from .am_endpoint import UNKNOWN_FATES, Endpoint

__all__ = ["CREDITS", "Card", "Faults", "Ledger", "Network"]

CREDITS = 4
"""Requests of an endpoint to another one that may be open at once."""


@dataclass(frozen=True, kw_only=True)
class Faults:
    """Probabilities of what a network does to a packet, and the delays of packets in ticks."""

    drop: float = 0.0
    double: float = 0.0
    late: float = 0.0
    delay: tuple[int, int] = (5, 20)
    late_delay: tuple[int, int] = (100, 3000)


@dataclass
class Ledger:
    """Everything that became of each message, by its number."""

    posted: dict[int, Endpoint] = field(default_factory=dict)
    delivered: dict[int, list[Endpoint]] = field(default_factory=dict)
    returned: dict[int, list[Reason]] = field(default_factory=dict)

    def check(self) -> Counter[str]:
        """Each message came once or returned once. Returns how often each end was; raises AssertionError."""
        found: Counter[str] = Counter()
        for number, owner in self.posted.items():
            came, back = self.delivered.get(number, []), self.returned.get(number, [])
            assert len(came) <= 1, f"message {number} was delivered {len(came)} times"
            assert len(back) <= 1, f"message {number} was returned {len(back)} times"
            if came and back:
                assert back[0] in UNKNOWN_FATES, (
                    f"message {number} was delivered and returned: {back[0].name}"
                )
                assert not came[0].card_lives(), f"message {number} was delivered to a card that lives"
            if owner.alive:
                assert came or back, f"message {number} was neither delivered nor returned"
            found["delivered" if came else back[0].name.lower() if back else "died"] += 1
        return found


class Network:
    """Cards, and the packets between them. `now` counts ticks; stamps of packets are `first_tick` later.

    - `kind`: the class of transports, one with a mutation perhaps.
    - `credits`, `window`: requests of an endpoint that may be open at once, to one other and to all.
    - `appetite`: most messages that a process consumes at once, and most requests that it holds without a reply.
    - `residence`: ticks that an endpoint is resident at least. With none, endpoints that fault may chase each other out
      before the messages come for which they were loaded.
    """

    def __init__(
        self,
        config: VirtualNetworkConfig,
        rng: random.Random,
        faults: Faults,
        *,
        cards: int,
        scan_ticks: int = 200,
        incarnation: int = 1,
        first_tick: int = 0,
        kind: type[Transport] = Transport,
        credits: int = CREDITS,
        window: int | None = None,
        residence: int = 0,
        appetite: int = 4,
    ) -> None:
        self.config, self.rng, self.faults = config, rng, faults
        self.credits, self.window = credits, config.queue_entries if window is None else window
        self.residence, self.appetite = residence, appetite
        self.scan_ticks, self.first_tick, self.kind = scan_ticks, first_tick, kind
        self.ledger = Ledger()
        self.now = 0
        self.packets = self.steps = 0
        self.before_step: Callable[[], None] | None = None
        self.numbers, self.tags = count(1), count(1)
        self._events: list[tuple[int, int, Callable[[], None]]] = []
        self._order = count()
        self.cards = [Card(self, node, incarnation) for node in range(cards)]

    def call(self, delay: int, what: Callable[[], None]) -> None:
        """Call something `delay` ticks from now."""
        heapq.heappush(self._events, (self.now + delay, next(self._order), what))

    def run(self, done: Callable[[], bool], ticks: int) -> None:
        """Run until `done`, for at most `ticks`; raises AssertionError with the state if it is not done by then."""
        end = self.now + ticks
        while self._events and self._events[0][0] <= end:
            self.now, _, what = heapq.heappop(self._events)
            if self.before_step is not None:
                self.before_step()
            what()
            self.steps += 1
            if self.steps % 16 == 0 and done():
                return
        if not done():
            lines = [f"card {card.node}: {line}" for card in self.cards for line in card.state()]
            raise AssertionError(f"not done after {ticks} ticks:\n" + "\n".join(lines))

    def send(self, packet: Packet) -> None:
        """A packet is on its way, or lost, or two."""
        self.packets += 1
        rng, faults = self.rng, self.faults
        for _ in range(2 if rng.random() < faults.double else 1):
            if rng.random() < faults.drop:
                continue
            delay = faults.late_delay if rng.random() < faults.late else faults.delay
            card = self.cards[packet.header.destination]
            self.call(rng.randint(*delay), partial(card.arrive, packet))


class Card:
    """A card: firmware that is as thin as can be around its transport, and the driver that pages its endpoints."""

    def __init__(self, network: Network, node: int, incarnation: int) -> None:
        self.network, self.node, self.incarnation = network, node, incarnation
        self.up = True
        self.endpoints: dict[int, Endpoint] = {}
        self.faults: deque[Endpoint] = deque()
        self.leaving: Endpoint | None = None
        self.loads = 0
        self.limit = network.config.frames
        self._start()
        network.call(network.rng.randint(1, network.scan_ticks), self._scan)

    def _start(self) -> None:
        self.transport = self.network.kind(self.network.config, node=self.node, incarnation=self.incarnation)

    def state(self) -> list[str]:
        """The transport's state, and endpoints with something under way."""
        lines = self.transport.state()
        for endpoint in self.endpoints.values():
            if endpoint.busy:
                lines.append(
                    f"endpoint {endpoint.number}: {endpoint.budget} to post, {len(endpoint.unsent)} unsent, "
                    f"{[len(box) for box in endpoint.inbox]} in, {len(endpoint.returning)} returning, resident "
                    f"{endpoint.resident}"
                )
        return lines

    def create(self, number: int) -> Endpoint:
        """A new endpoint, in host memory, whose process runs."""
        endpoint = self.endpoints[number] = Endpoint(self, number, next(self.network.tags))
        self.network.call(self.network.rng.randint(1, 50), endpoint.step)
        return endpoint

    def kill(self, endpoint: Endpoint) -> None:
        """The process of an endpoint dies."""
        endpoint.alive = endpoint.resident = False
        self.transport.abandon(endpoint.number)
        del self.endpoints[endpoint.number]
        if self.leaving is endpoint:
            self.leaving = None
        if endpoint in self.faults:
            self.faults.remove(endpoint)
        self._page()

    def die(self) -> None:
        """The card and its processes are dead."""
        self.up = False
        for endpoint in self.endpoints.values():
            endpoint.alive = endpoint.resident = False
        self.endpoints, self.leaving = {}, None
        self.faults.clear()

    def restart(self) -> None:
        """The card is started again, without endpoints."""
        self.incarnation = next_incarnation(self.incarnation)
        self._start()
        self.up = True

    # The firmware.

    def doorbell(self, endpoint: Endpoint, counts: Counts) -> None:
        """A process has written its doorbell word; of an endpoint in host memory that is a fault."""
        if not endpoint.resident or self.leaving is endpoint:
            self.fault(endpoint)
            return
        record, entries = endpoint.record, self.network.config.queue_entries
        steps = Counts.unpack(counts.word()).since(record.counts)
        for reply in (False, True):
            for place in range(record.posted[reply], record.posted[reply] + steps[reply]):
                message = endpoint.page[reply][place % entries]
                assert message is not None and message.context == place
                endpoint.unsent.append(message)
        record.posted = (record.posted[0] + steps[0], record.posted[1] + steps[1])
        record.consumed = (record.consumed[0] + steps[2], record.consumed[1] + steps[3])
        self.pump()

    def pump(self) -> None:
        """Offer what is posted, send what is due, tell what has ended."""
        for endpoint in self.endpoints.values():
            while endpoint.resident and self.leaving is not endpoint and endpoint.unsent:
                self.transport.offer(endpoint.unsent.popleft())
        self._outcomes()
        while (packet := self.transport.next_packet(self.network.now + self.network.first_tick)) is not None:
            self.network.send(packet)
            self.transport.sent(packet)

    def _outcomes(self) -> None:
        ledger = self.network.ledger
        while (outcome := self.transport.next_outcome()) is not None:
            message = outcome.message
            endpoint = self.endpoints[message.header.source_endpoint]
            if outcome.ending is Ending.WITHDRAWN:
                endpoint.unsent.append(message)
                continue
            if outcome.ending is Ending.RETURNED:
                ledger.returned.setdefault(message.words[0], []).append(outcome.reason)
                endpoint.returning.append((message, outcome.reason))
            self._taken(endpoint, message)
        for endpoint in self.endpoints.values():
            while endpoint.returning and self._free(endpoint, True):
                self._into(endpoint, True, *endpoint.returning.popleft())

    def _taken(self, endpoint: Endpoint, message: Message) -> None:
        """An entry is done; those done in order are free."""
        record, reply, entries = endpoint.record, message.header.reply, self.network.config.queue_entries
        done, taken = list(record.done), list(record.taken)
        place = message.context
        assert isinstance(place, int)
        done[reply] |= 1 << place - taken[reply]
        while done[reply] & 1:
            done[reply] >>= 1
            taken[reply] += 1
        assert done[reply] < 1 << entries
        record.done, record.taken = (done[0], done[1]), (taken[0], taken[1])

    def _free(self, endpoint: Endpoint, reply: bool) -> bool:
        record = endpoint.record
        return record.delivered[reply] - record.consumed[reply] < self.network.config.queue_entries

    def _into(self, endpoint: Endpoint, reply: bool, found: Fresh | Message, status: Reason) -> None:
        delivered = list(endpoint.record.delivered)
        delivered[reply] += 1
        endpoint.record.delivered = (delivered[0], delivered[1])
        endpoint.inbox[reply].append((found, status))

    def arrive(self, packet: Packet) -> None:
        """A packet has come; that of a message is answered a little later."""
        if not self.up:
            return
        transport = self.transport
        found = transport.arrived(packet.header, packet.words)
        if isinstance(found, Fresh):
            fresh = found
            self.network.call(self.network.rng.randint(0, 3), lambda: self._deliver(transport, fresh))
        elif found is not None:
            self.network.send(found)
        self.pump()
        self._page()

    def _deliver(self, transport: Transport, fresh: Fresh) -> None:
        if self.transport is not transport or not self.up:
            return
        endpoint, reply = self.endpoints.get(fresh.endpoint), fresh.header.reply
        if endpoint is None:
            reason = Reason.NO_ENDPOINT
        elif endpoint.tag != fresh.header.tag:
            reason = Reason.WRONG_TAG
        elif not endpoint.resident or self.leaving is endpoint:
            reason = Reason.NOT_RESIDENT
            self.fault(endpoint)
        elif not self._free(endpoint, reply):
            reason = Reason.NO_BUFFER
        else:
            reason = Reason.DELIVERED
            self._into(endpoint, reply, fresh, reason)
            self.network.ledger.delivered.setdefault(fresh.words[0], []).append(endpoint)
        answer = transport.answer(fresh, reason)
        if answer is not None:
            self.network.send(answer)
        self.pump()

    def _scan(self) -> None:
        if self.up:
            self.transport.scan()
            self.pump()
            self._page()
        self.network.call(self.network.scan_ticks, self._scan)

    # The driver.

    def fault(self, endpoint: Endpoint) -> None:
        """An endpoint is to be resident."""
        if endpoint not in self.faults:
            self.faults.append(endpoint)
            self.network.call(1, self._page)

    def _page(self) -> None:
        """Go on with faults, one at a time: make the victim quiet, unload it, load the other."""
        if self.leaving is not None:
            if not self.transport.quiet(self.leaving.number):
                return
            self._outcomes()
            self.leaving.resident = False
            self.transport.resume(self.leaving.number)
            if self.transport.missed(self.leaving.number):
                self.fault(self.leaving)
            self.leaving = None
        while self.faults:
            resident = [endpoint for endpoint in self.endpoints.values() if endpoint.resident]
            if self.faults[0].resident:
                self.faults.popleft()
                continue
            if len(resident) >= self.limit:
                rested = [one for one in resident if one.loaded + self.network.residence <= self.network.now]
                if not rested:
                    self.network.call(self.network.scan_ticks, self._page)
                    return
                self.leaving = self.network.rng.choice(rested)
                self.transport.quiesce(self.leaving.number)
                self.pump()
                return
            endpoint = self.faults.popleft()
            endpoint.resident, endpoint.loaded = True, self.network.now
            self.loads += 1
            for packet in self.transport.loaded(endpoint.number):
                self.network.send(packet)
            self.pump()
