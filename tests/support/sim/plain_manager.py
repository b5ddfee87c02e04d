"""The admission criteria and the sharing rule written down plainly.

They are reckoned from scratch for a whole set of flows, by floating point, with nothing of the manager's code but the
numbers.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise
from typing import Any

from lanikai.hdl.network import Network

FlowKey = tuple[int, int, int, int, int]
"""Source node and port, target node and port, priority."""


def curve(points: Sequence[tuple[float, float]], x: float) -> float:
    """A polygon through points, -infinity beyond."""
    for (x0, y0), (x1, y1) in pairwise(points):
        if x0 <= x <= x1:
            return y0 + (y1 - y0) * (x - x0) / (x1 - x0)
    return float("-inf")


class Plain:
    """A cluster: its network, points of its nodes' curve, the other constants, all in bytes a second."""

    def __init__(
        self, network: Network, points: Sequence[tuple[float, float]], shared: float, port: float
    ) -> None:
        self.network, self.points, self.shared, self.port = network, points, shared, port

    def excess(self, rates: Mapping[FlowKey, float]) -> dict[Any, float]:
        """The excess of each node and switch port over what it carries; negative where there is room."""
        found: dict[Any, float] = {}
        for node in range(len(self.network.nodes)):
            out = {flow: rate for flow, rate in rates.items() if flow[0] == node}
            into = sum(rate for flow, rate in rates.items() if flow[2] == node)
            most = curve(self.points, into)
            if len(out) > 1:
                # A packet takes 1584 cycles, and 68 more for each entry of the queue that is turned past.
                others = len({flow[2] for flow in out}) - 1
                most = min(self.shared, most * 1584 / (1584 + 68 * others))
            found[node] = sum(out.values()) - most
        for flow, rate in rates.items():
            for place in self.network.path(flow[0], flow[2]):
                found[place] = found.get(place, -self.port) + rate
        return found

    def fits(self, rates: Mapping[FlowKey, float], slack: float = 2.0) -> bool:
        """Whether all is carried, to the rounding of whole bytes a second."""
        return all(over <= slack for over in self.excess(rates).values())


def largest(fits: Callable[[float], bool], most: float) -> float:
    """The largest number, to a thousandth, up to `most`, that fits; 0 if none does."""
    low, high = 0.0, most
    if fits(most):
        return most
    while high - low > 1e-3:
        middle = (low + high) / 2
        low, high = (middle, high) if fits(middle) else (low, middle)
    return low


def fill(
    model: Plain, premium: Mapping[FlowKey, float], weights: Mapping[FlowKey, int], peak: float
) -> dict[FlowKey, float]:
    """Progressive filling: all flows rise by weight. Those stop that cannot have a little more alone."""
    fixed: dict[FlowKey, float] = {}
    rising = dict(weights)

    def at(level: float) -> dict[FlowKey, float]:
        return {**premium, **fixed, **{one: min(peak, level * weight) for one, weight in rising.items()}}

    while rising:
        level = largest(lambda most: model.fits(at(most), slack=1e-3), peak)
        now = at(level)
        stopped = [
            one
            for one, weight in rising.items()
            if level * weight >= peak * (1 - 1e-9)
            or not model.fits({**now, one: min(peak, now[one] + 2000)}, slack=50.0)
        ]
        assert stopped, "nobody is held, and nobody can rise"
        for one in stopped:
            fixed[one] = min(peak, level * rising.pop(one))
    return fixed


def most_that_send(
    model: Plain, premium: Mapping[FlowKey, float], flows: Sequence[FlowKey], rate: float
) -> int:
    """The most flows that can send at once at a rate: by trying every set of pairs of nodes."""
    pairs = sorted({(one[0], one[2]) for one in flows})
    most = 0
    for number in range(1 << len(pairs)):
        chosen = {pair for place, pair in enumerate(pairs) if number >> place & 1}
        sending = [one for one in flows if (one[0], one[2]) in chosen]
        if len(sending) > most and model.fits({**premium, **dict.fromkeys(sending, rate)}, slack=1e-4):
            most = len(sending)
    return most
