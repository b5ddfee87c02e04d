"""Holdings of flows, and the three admission criteria (gulati-thesis-2001 3.3.1). Pure: no simulation, no messages."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from enum import IntEnum
from typing import Any

from lanikai.hdl.network import Place

from .capacity import ClusterCapacity
from .flows import FlowId

__all__ = ["Ledger", "Refusal", "Where"]


class Where(IntEnum):
    """The place where a criterion failed, in the criteria's order."""

    SOURCE = 1
    PORT = 2
    TARGET = 3


@dataclass(frozen=True, kw_only=True)
class Refusal:
    """A criterion that does not hold: at the source node, a switch output port or the target node.

    - `place`: the node, or the switch.
    - `port`: the port of the switch.
    - `left`: the most that the flow could be given there, bytes a second.
    """

    where: Where
    place: int
    port: int = 0
    left: int


class Ledger:
    """Flows of a cluster and their counters. A flow is in one of the two at most:

    - `premium`: bandwidth of each reservation, payload bytes a second.
    - `best_effort`: weight of each best-effort flow.

    The criteria count premium flows alone: best-effort flows have what is left (`sharing`).
    """

    def __init__(self, capacity: ClusterCapacity) -> None:
        self.capacity = capacity
        self.premium: dict[FlowId, int] = {}
        self.best_effort: dict[FlowId, int] = {}
        self._incoming: Counter[int] = Counter()
        self._outgoing: Counter[int] = Counter()
        self._flows: Counter[int] = Counter()
        self._targets: dict[int, Counter[int]] = {}
        self._ports: Counter[Place] = Counter()

    def counters(self) -> dict[str, Mapping[Any, int]]:
        """Every counter that is not zero.

        They count bytes a second in and out of nodes and through ports, flows out of nodes, and flows to each node.
        """
        targets = {(node, t): n for node, to in self._targets.items() for t, n in to.items()}
        counts: dict[str, Mapping[Any, int]] = {
            "incoming": dict(self._incoming),
            "outgoing": dict(self._outgoing),
            "flows": dict(self._flows),
            "targets": targets,
            "ports": dict(self._ports),
        }
        return {name: one for name, one in counts.items() if one}

    def incoming(self, node: int) -> int:
        """Bytes a second promised into a node."""
        return self._incoming[node]

    def outgoing(self, node: int) -> int:
        """Bytes a second promised out of a node."""
        return self._outgoing[node]

    def flows(self, node: int) -> int:
        """Premium flows out of a node."""
        return self._flows[node]

    def targets(self, node: int) -> frozenset[int]:
        """The nodes that premium flows out of a node go to."""
        return frozenset(self._targets.get(node, ()))

    def through(self, place: Place) -> int:
        """Bytes a second promised through a switch output port."""
        return self._ports[place]

    def check(self, flow: FlowId, rate: int) -> Refusal | None:
        """None if every criterion would hold with `flow` at `rate`; else the refusal that leaves least, the first of
        these in the criteria's order."""
        refusals = [one for one in self._left(flow) if one.left < rate]
        return min(refusals, key=lambda one: one.left) if refusals else None

    def admit(self, flow: FlowId, rate: int) -> None:
        """Promise `rate` to a flow that has no reservation. The caller has checked the criteria."""
        if flow in self.premium:
            raise ValueError(f"the {flow} has a reservation already")
        self.best_effort.pop(flow, None)
        self.premium[flow] = rate
        self._count(flow, rate, 1)

    def stand(self, flow: FlowId, weight: int) -> None:
        """Make a flow, whatever it was, best-effort with `weight`, or take its standing away (0)."""
        rate = self.premium.pop(flow, None)
        if rate is not None:
            self._count(flow, -rate, -1)
        if weight:
            self.best_effort[flow] = weight
        else:
            self.best_effort.pop(flow, None)

    def copy(self) -> Ledger:
        """A ledger with the same flows, to try a change on."""
        other = Ledger(self.capacity)
        other.premium, other.best_effort = dict(self.premium), dict(self.best_effort)
        for name in ("_incoming", "_outgoing", "_flows", "_ports"):
            setattr(other, name, Counter(getattr(self, name)))
        other._targets = {node: Counter(to) for node, to in self._targets.items()}
        return other

    def held(self, node: int, source_port: int | None = None) -> list[FlowId]:
        """The flows with a standing from a node, or from one of its ports."""
        return [
            flow
            for flow in (*self.premium, *self.best_effort)
            if flow.source == node and source_port in (None, flow.source_port)
        ]

    def _left(self, flow: FlowId) -> list[Refusal]:
        """The bandwidths that a flow could be given, by each criterion."""
        capacity, source, target = self.capacity, flow.source, flow.target
        flows = self._flows[source] + 1
        destinations = len(self.targets(source) | {target})
        most = capacity.node.most_outgoing(self._incoming[source], flows=flows, destinations=destinations)
        left = [Refusal(where=Where.SOURCE, place=source, left=max(0, most - self._outgoing[source]))]
        left += [
            Refusal(
                where=Where.PORT,
                place=switch,
                port=port,
                left=max(0, capacity.port - self._ports[switch, port]),
            )
            for switch, port in capacity.path(source, target)
        ]
        return [*left, Refusal(where=Where.TARGET, place=target, left=self._left_into(target))]

    def _left_into(self, node: int) -> int:
        """The most that a node could take beside what it is promised: by bisection, since more in means less out."""
        incoming, outgoing = self._incoming[node], self._outgoing[node]
        flows, destinations = self._flows[node], len(self.targets(node))
        low, high = 0, self.capacity.node.peak + 1
        while high - low > 1:
            middle = (low + high) // 2
            if self.capacity.node.fits(
                incoming=incoming + middle, outgoing=outgoing, flows=flows, destinations=destinations
            ):
                low = middle
            else:
                high = middle
        return low

    def _count(self, flow: FlowId, rate: int, flows: int) -> None:
        """Add to the counters of a flow's nodes and ports. Zeros are not kept."""
        targets = self._targets.setdefault(flow.source, Counter())
        changes: list[tuple[Counter[int] | Counter[Place], object, int]] = [
            (self._outgoing, flow.source, rate),
            (self._flows, flow.source, flows),
            (targets, flow.target, flows),
            (self._incoming, flow.target, rate),
            *((self._ports, place, rate) for place in self.capacity.path(flow.source, flow.target)),
        ]
        counter: Counter[object]
        for counter, key, change in changes:  # type: ignore[assignment]
            counter[key] += change
            if not counter[key]:
                del counter[key]
        if not targets:
            del self._targets[flow.source]
