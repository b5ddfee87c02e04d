"""Two transports side by side, whose packets a test carries by hand: lost, late, twice or once."""

from __future__ import annotations

from collections.abc import Iterator

from lanikai.firmware.am.config import VirtualNetworkConfig
from lanikai.firmware.am.messages import Fresh, Message, Outcome, Packet
from lanikai.firmware.am.transport import Transport
from lanikai.firmware.am.wire import AmHeader, Reason

SMALL = VirtualNetworkConfig(nodes_max=8, tries=5)


def message(
    node: int = 1, *, source: int = 0, endpoint: int = 0, number: int = 0, reply: bool = False
) -> Message:
    """A short message of one word, its number."""
    header = AmHeader(source_endpoint=source, words=1, reply=reply)
    return Message(node=node, endpoint=endpoint, header=header, words=(number,))


class Pair:
    """Cards 0 and 1, each with a transport. `say` is the reason with which a card answers each fresh message."""

    def __init__(
        self,
        config: VirtualNetworkConfig = SMALL,
        incarnations: tuple[int, int] = (1, 1),
        kind: type[Transport] = Transport,
    ) -> None:
        self.config = config
        self.cards = [
            kind(config, node=node, incarnation=incarnation) for node, incarnation in enumerate(incarnations)
        ]
        self.now = 0
        self.say = Reason.DELIVERED
        self.delivered: list[int] = []

    def send(self, card: int) -> list[Packet]:
        """All packets that a card sends now."""
        found = []
        self.now += 1
        while (packet := self.cards[card].next_packet(self.now)) is not None:
            found.append(packet)
            self.cards[card].sent(packet)
        return found

    def carry(self, packet: Packet) -> Packet | None:
        """A packet arrives at its card; returns the answer."""
        to = self.cards[packet.header.destination]
        found = to.arrived(packet.header, packet.words)
        if isinstance(found, Fresh):
            if self.say is Reason.DELIVERED:
                self.delivered.append(found.words[0])
            return to.answer(found, self.say)
        return found

    def exchange(self, packets: list[Packet]) -> None:
        """Packets arrive, and then their answers."""
        for packet in packets:
            answer = self.carry(packet)
            if answer is not None:
                assert self.carry(answer) is None

    def run(self, rounds: int = 20) -> None:
        """Both cards exchange packets until nothing is due."""
        for _ in range(rounds):
            for card in (0, 1):
                self.exchange(self.send(card))

    def scan(self, card: int = 0, times: int = 1) -> None:
        """A card's scans, of which each finds all that is not answered old enough."""
        for _ in range(times):
            self.cards[card].scan()
            self.cards[card].scan()

    def outcomes(self, card: int = 0) -> list[Outcome]:
        """The messages that have ended."""
        return list(self._outcomes(card))

    def _outcomes(self, card: int) -> Iterator[Outcome]:
        while (outcome := self.cards[card].next_outcome()) is not None:
            yield outcome
