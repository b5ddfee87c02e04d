"""How best-effort flows share what premium flows leave. Pure: no simulation, no messages.

Two policies, functions of a ledger to the bandwidth of each of its best-effort flows, payload bytes a second:

- `set_aside`: the thesis' (gulati-thesis-2001 4.3): "the surplus bandwidth at each node and switch port is fairly set
  aside for all such flows incident on the node or the port. The bandwidth allocated to a flow is the minimum of these
  values for all nodes and ports traversed by it. Note that this simple arbitration is sub-optimal".
- `max_min`: weighted max-min fair: what a flow cannot use, since another place on its path gives it less, goes to the
  others. Nobody gets less than by `set_aside`.

Bandwidths are levels (bytes a second for each unit of weight) times weights; so a flow with a place for itself may be
up to a weight (255 bytes a second) below the peak. A flow to which a place can give nothing has 0: it is parked, and
sends nothing until that changes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from types import MappingProxyType

from lanikai.hdl.network import Place

from .flows import FlowId
from .ledger import Ledger

__all__ = ["POLICIES", "Policy", "carried", "max_min", "set_aside"]

Policy = Callable[[Ledger], dict[FlowId, int]]
Rates = Mapping[FlowId, int]
Somewhere = int | Place
"""A node, or a switch output port."""


def set_aside(ledger: Ledger) -> dict[FlowId, int]:
    """4.3's policy; by weight where weights differ."""
    places = _places(ledger)
    peak = ledger.capacity.node.peak
    rates = dict.fromkeys(ledger.best_effort, peak)
    for place, flows in places.items():
        weights = {flow: ledger.best_effort[flow] for flow in flows}
        level = _highest(lambda k, w=weights: _at(w, k, peak), [place], ledger, peak)  # type: ignore[misc]
        for flow, weight in weights.items():
            rates[flow] = min(rates[flow], level * weight)
    return rates


def max_min(ledger: Ledger) -> dict[FlowId, int]:
    """Weighted max-min fair: the level of all flows rises together; a flow that a full place holds stays where it is,
    the others go on rising."""
    places = _places(ledger)
    peak = ledger.capacity.node.peak
    still: dict[FlowId, int] = {}
    rising = dict(ledger.best_effort)
    while rising:
        level = _highest(lambda k: still | _at(rising, k, peak), places, ledger, peak)
        rates = still | _at(rising, level, peak)
        beyond = still | _at(rising, level + 1, peak)
        full = [place for place in places if not _fits(place, beyond, ledger)]
        held = {flow for flow in rising if rates[flow] == peak}
        # At a full place only what makes it fuller has to stop: a node that can receive no more may well send more.
        # Tried with as much as all flows would get together by the next level, so that no rounding hides it.
        step = sum(rising.values())
        at_full = {flow for place in full for flow in places[place] if flow in rising}
        held |= {
            flow
            for flow in at_full
            if not all(_fits(place, {**rates, flow: rates[flow] + step}, ledger) for place in full)
        }
        for flow in held or at_full or set(rising):
            still[flow] = rates[flow]
            del rising[flow]
    return {flow: still[flow] for flow in ledger.best_effort}


POLICIES: Mapping[str, Policy] = MappingProxyType({"set_aside": set_aside, "max_min": max_min})
"""By name: what `ManagerConfig.best_effort` chooses from."""


def carried(ledger: Ledger, rates: Rates) -> bool:
    """Whether every place that best-effort flows touch carries them at `rates`, bytes a second, beside the premium
    flows."""
    return all(_fits(place, rates, ledger) for place in _places(ledger))


def _at(weights: Rates, level: int, peak: int) -> dict[FlowId, int]:
    return {flow: min(peak, level * weight) for flow, weight in weights.items()}


def _highest(rates: Callable[[int], Rates], places: Iterable[Somewhere], ledger: Ledger, highest: int) -> int:
    """The highest level, at most `highest`, whose rates all places carry; 0 if none."""
    places = list(places)
    low, high = 0, highest + 1
    while high - low > 1:
        middle = (low + high) // 2
        trial = rates(middle)
        if all(_fits(place, trial, ledger) for place in places):
            low = middle
        else:
            high = middle
    return low


def _places(ledger: Ledger) -> dict[Somewhere, list[FlowId]]:
    """The places that best-effort flows touch, each with those flows."""
    places: dict[Somewhere, list[FlowId]] = {}
    for flow in ledger.best_effort:
        touched: list[Somewhere] = [flow.source, flow.target]
        for place in [*touched, *ledger.capacity.path(flow.source, flow.target)]:
            places.setdefault(place, []).append(flow)
    return places


def _fits(place: Somewhere, rates: Rates, ledger: Ledger) -> bool:
    """Whether a place carries the premium flows and best-effort flows at `rates`; flows at 0 are not there."""
    going = {flow: rate for flow, rate in rates.items() if rate}
    capacity = ledger.capacity
    if not isinstance(place, int):
        through = sum(
            rate for flow, rate in going.items() if place in capacity.path(flow.source, flow.target)
        )
        return ledger.through(place) + through <= capacity.port
    out = [flow for flow in going if flow.source == place]
    into = [flow for flow in going if flow.target == place]
    return capacity.node.fits(
        incoming=ledger.incoming(place) + sum(going[flow] for flow in into),
        outgoing=ledger.outgoing(place) + sum(going[flow] for flow in out),
        flows=ledger.flows(place) + len(out),
        destinations=len(ledger.targets(place) | {flow.target for flow in out}),
    )
