"""Sharing by best-effort flows of what premium flows leave. Pure: no simulation, no messages.

There are two policies. Each is a function of a ledger to the bandwidth of each of its best-effort flows, payload bytes
a second:

- `set_aside`: the thesis' policy (gulati-thesis-2001 4.3). "The surplus bandwidth at each node and switch port is
  fairly set aside for all such flows incident on the node or the port. The bandwidth allocated to a flow is the minimum
  of these values for all nodes and ports traversed by it. Note that this simple arbitration is sub-optimal."
- `max_min`: weighted max-min fair. What a flow cannot use, since another place on its path gives it less, goes to the
  others. Nobody gets less than by `set_aside`. A node that sends to more destinations carries less: it may not carry
  its premium flows if all best-effort flows sent. Then as few of these as possible are parked, and no flow that could
  have something beside the others.

Bandwidths are levels (bytes a second for each unit of weight) times weights. So a flow with a place for itself may be
up to a weight (255 bytes a second) below the peak. A flow to which a place can give nothing has 0: it is parked, and
sends nothing until that changes.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from types import MappingProxyType
from typing import NamedTuple

from lanikai.hdl.network import Place

from .flows import FlowId
from .ledger import Ledger

__all__ = ["POLICIES", "Policy", "carried", "max_min", "set_aside"]

Policy = Callable[[Ledger], dict[FlowId, int]]
Rates = Mapping[FlowId, int]
Somewhere = int | Place
"""A node, or a switch output port."""


class Bundle(NamedTuple):
    """Best-effort flows that have the same at all times: of one pair of nodes and one weight."""

    source: int
    target: int
    weight: int


Levels = Mapping[Bundle, int]
"""Bytes a second of each flow of a bundle."""


class _Sharing:
    """The best-effort flows of a ledger. `counts`: how many are in each bundle. `places`: the bundles that touch each
    place."""

    def __init__(self, ledger: Ledger) -> None:
        self.ledger = ledger
        self.peak = ledger.capacity.node.peak
        self.counts = Counter(
            Bundle(flow.source, flow.target, weight) for flow, weight in ledger.best_effort.items()
        )
        self.places: dict[Somewhere, list[Bundle]] = {}
        for bundle in self.counts:
            for place in self.touched(bundle):
                self.places.setdefault(place, []).append(bundle)

    def touched(self, bundle: Bundle) -> list[Somewhere]:
        """The places where the flows of a bundle go."""
        return [bundle.source, bundle.target, *self.ledger.capacity.path(bundle.source, bundle.target)]

    def at(self, bundles: Iterable[Bundle], level: int) -> dict[Bundle, int]:
        """The rates of bundles at a level."""
        return {bundle: min(self.peak, level * bundle.weight) for bundle in bundles}

    def fits(self, place: Somewhere, rates: Levels, *, one_more: tuple[Bundle, int] | None = None) -> bool:
        """Whether a place carries `rates`, and one flow more of a bundle, with so much."""
        load = [(*bundle[:2], rate, self.counts[bundle]) for bundle, rate in rates.items()]
        if one_more is not None:
            bundle, more = one_more
            load[list(rates).index(bundle)] = (*bundle[:2], rates[bundle], self.counts[bundle] - 1)
            load.append((*bundle[:2], rates[bundle] + more, 1))
        return _fits(place, load, self.ledger)

    def highest(self, rates: Callable[[int], Levels], places: Iterable[Somewhere]) -> int:
        """The highest level, at most the peak, whose rates all places carry; 0 if none."""
        places = list(places)
        low, high = 0, self.peak + 1
        while high - low > 1:
            middle = (low + high) // 2
            trial = rates(middle)
            if all(self.fits(place, trial) for place in places):
                low = middle
            else:
                high = middle
        return low

    def able(self) -> list[Bundle]:
        """The bundles whose flows can send at once, if ever so little: all of them, or else such that as few flows as
        possible are parked.

        Bundles of one pair of nodes take the same path and make one destination: they can, or cannot, together. The
        cost of a further destination to its source does not depend on which it is. So the pairs of most flows come
        first, behind those whose destination a premium flow makes already.
        """
        if all(self.fits(place, self.at(self.counts, 1)) for place in self.places):
            return list(self.counts)
        pairs: dict[tuple[int, int], list[Bundle]] = {}
        for bundle in self.counts:
            pairs.setdefault(bundle[:2], []).append(bundle)

        def costs(pair: tuple[int, int]) -> tuple[bool, int]:
            source, target = pair
            flows = sum(self.counts[bundle] for bundle in pairs[pair])
            return target not in self.ledger.targets(source), -flows

        able: list[Bundle] = []
        for pair in sorted(pairs, key=costs):
            more = self.at([*able, *pairs[pair]], 1)
            if all(self.fits(place, more) for place in self.touched(pairs[pair][0])):
                able += pairs[pair]
        return able

    def of_flows(self, rates: Levels) -> dict[FlowId, int]:
        """The rates, by flow."""
        return {
            flow: rates[Bundle(flow.source, flow.target, weight)]
            for flow, weight in self.ledger.best_effort.items()
        }


def set_aside(ledger: Ledger) -> dict[FlowId, int]:
    """The policy of 4.3; by weight where weights differ."""
    sharing = _Sharing(ledger)
    rates = dict.fromkeys(sharing.counts, sharing.peak)
    for place, bundles in sharing.places.items():
        level = sharing.highest(lambda k, b=bundles: sharing.at(b, k), [place])  # type: ignore[misc]
        for bundle in bundles:
            rates[bundle] = min(rates[bundle], level * bundle.weight)
    return sharing.of_flows(rates)


def max_min(ledger: Ledger) -> dict[FlowId, int]:
    """Weighted max-min fair: the level of all flows that can send at all rises together.

    A flow that a full place holds stays where it is, the others go on rising.
    """
    sharing = _Sharing(ledger)
    peak, places, counts = sharing.peak, sharing.places, sharing.counts
    rising = sharing.able()
    still: dict[Bundle, int] = {bundle: 0 for bundle in counts if bundle not in rising}
    while rising:
        level = sharing.highest(lambda k: still | sharing.at(rising, k), places)
        rates = still | sharing.at(rising, level)
        beyond = still | sharing.at(rising, level + 1)
        full = [place for place in places if not sharing.fits(place, beyond)]
        held = {bundle for bundle in rising if rates[bundle] == peak}
        # At a full place only what makes it fuller has to stop: a node that can receive no more may well send more.
        # Tried with as much as all flows would get together by the next level, so that no rounding hides it.
        step = sum(bundle.weight * counts[bundle] for bundle in rising)
        at_full = {bundle for place in full for bundle in places[place] if bundle in rising}
        held |= {
            bundle
            for bundle in at_full
            if not all(sharing.fits(place, rates, one_more=(bundle, step)) for place in full)
        }
        for bundle in held or at_full or set(rising):
            still[bundle] = rates[bundle]
            rising.remove(bundle)
    return sharing.of_flows(still)


POLICIES: Mapping[str, Policy] = MappingProxyType({"set_aside": set_aside, "max_min": max_min})
"""The policies by name: the choices of `ManagerConfig.best_effort`."""


def carried(ledger: Ledger, rates: Rates) -> bool:
    """Whether every place that best-effort flows touch carries them at `rates`, bytes a second, beside the premium
    flows."""
    counts = Counter((flow.source, flow.target, rate) for flow, rate in rates.items())
    load = [(*one, count) for one, count in counts.items()]
    return all(_fits(place, load, ledger) for place in _Sharing(ledger).places)


def _fits(place: Somewhere, load: Iterable[tuple[int, int, int, int]], ledger: Ledger) -> bool:
    """Whether a place carries the premium flows and a `load` beside them.

    An entry of the load is (source, target, bytes a second of each flow, how many flows). Flows at 0 are not there.
    """
    capacity = ledger.capacity
    going = [one for one in load if one[2] and one[3]]
    if not isinstance(place, int):
        through = sum(
            rate * count for source, target, rate, count in going if place in capacity.path(source, target)
        )
        return ledger.through(place) + through <= capacity.port
    out = [one for one in going if one[0] == place]
    into = [one for one in going if one[1] == place]
    return capacity.node.fits(
        incoming=ledger.incoming(place) + sum(rate * count for _, _, rate, count in into),
        outgoing=ledger.outgoing(place) + sum(rate * count for _, _, rate, count in out),
        flows=ledger.flows(place) + sum(one[3] for one in out),
        destinations=len(ledger.targets(place) | {one[1] for one in out}),
    )
