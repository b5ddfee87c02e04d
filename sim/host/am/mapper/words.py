"""Source routes as words: the output ports in order, and the mark that ends each of them."""

from __future__ import annotations

from dataclasses import dataclass

from lanikai.hdl.config import ConfigError, RouterConfig

__all__ = ["Word", "WordFormat"]

Word = tuple[int, ...]
"""The output ports of a way, the first switch's first."""


@dataclass(frozen=True)
class WordFormat:
    """The form of routes in a network: `ports` of each switch, `hop_bits` a hop, `max_hops` in a route.

    A switch shifts zeros into a route. So a packet whose hops are used up inside of a switch goes on to port 0 there,
    and again at the next one. Where ports 0 lead round in a circle it would never leave the network. So every route
    ends with a hop that names a port which no switch has (`end`): there the packet is dropped whole. A host takes a
    packet whatever hops are left.

    Raises ConfigError if every number of a hop names a port.
    """

    ports: int
    hop_bits: int
    max_hops: int

    def __post_init__(self) -> None:
        if self.ports >= 1 << self.hop_bits:
            raise ConfigError(
                f"link.hop_bits = {self.hop_bits}: names no port but the {self.ports} of a switch, so that a route "
                f"has no end; the mapper needs {self.ports.bit_length()} bits"
            )

    @classmethod
    def of(cls, router: RouterConfig) -> WordFormat:
        """The form of routes through such routers."""
        return cls(router.ports, router.link.hop_bits, router.link.max_hops)

    @property
    def end(self) -> int:
        """The hop that ends a route: the largest number, which names no port."""
        return (1 << self.hop_bits) - 1

    @property
    def longest(self) -> int:
        """Most ports of a word: one hop of a route is its end."""
        return self.max_hops - 1

    def fits(self, word: Word) -> bool:
        """Whether a route holds the word and its end."""
        return len(word) <= self.longest

    def route(self, word: Word) -> int:
        """The header's route field. Raises ValueError for a word that is too long, or names no port."""
        if not self.fits(word) or not all(0 <= port < self.ports for port in word):
            raise ValueError(f"word {word}: at most {self.longest} ports, each 0 to {self.ports - 1}")
        return sum(port << place * self.hop_bits for place, port in enumerate((*word, self.end)))

    def at_end(self, route: int) -> bool:
        """Whether the route of a packet that has arrived has no hop left but its end."""
        return route == self.end
