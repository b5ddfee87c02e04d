"""The check of networks whose packets have a choice: no deadlock (Duato 1993), and no way that leads round for ever."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from .config import RouterConfig
from .network_checks import Channel, cycle_words, dependency_cycle, find_cycle
from .router.routing import Topology, Ways, routing_class

__all__ = ["in_order", "require_order", "waiting_cycle"]


class _State(NamedTuple):
    """Packets that came on VL `vl` of an input port of a router, on their way to the same goal."""

    router: int
    in_port: int
    vl: int
    goal: int


def in_order(network: Topology) -> bool:
    """Whether packets from node to node on one VL arrive in the order in which they were sent."""
    return routing_class(network.router).in_order


def require_order(router: RouterConfig, name: str, whose: str) -> None:
    """Raises ValueError if routers do not keep packets in order. `name`: the field; `whose`: who needs it."""
    if not routing_class(router).in_order:
        raise ValueError(
            f"{name}.routing = {router.routing!r}: does not keep packets in order, as {whose} need"
        )


def waiting_cycle(network: Topology) -> str | None:
    """A cycle of channels that could wait for each other, in words, or None.

    Where packets have one way each it is `dependency_cycle`. Where they have a choice it is a cycle of the extended
    channel dependency graph, which is made so:

    - Escape channels are those (port, VL) pairs that are the escape of any packet (`RoutingFunction.ways`).
    - A packet that came on an escape channel may wait for every escape channel that it is admitted to. That is so, too,
      after it has gone on by channels that are none (indirect dependencies).

    Without a cycle there is no deadlock: of all escape channels that waiting packets hold take the one that is last in
    the graph's order. The packet at the front of it, or the one that went on from there, may take a later escape
    channel, which nobody holds. That packet must be able to ask for it. So its header may not stand behind another
    packet on a channel that is no escape: such options need `options_empty`.

    Raises ValueError for each of these:

    - a pair that does not exist or leads off the network
    - a packet without an escape
    - an option on a channel that is no escape, without `options_empty`
    - a way that comes back to the same input port and VL, on which a packet could go round for ever
    """
    if routing_class(network.router).in_order:
        return dependency_cycle(network)
    return _Choices(network).cycle()


class _Choices:
    """All packets of a network and all that they may do."""

    def __init__(self, network: Topology) -> None:
        self._network = network
        self._function = routing_class(network.router)
        self._numbers: dict[Channel, int] = {}
        """A number of each channel, for sets of channels that are bits of an integer."""
        self._ways: dict[_State, Ways] = {}
        self._escapes = 0

    def cycle(self) -> str | None:
        """As `waiting_cycle`."""
        self._explore()
        needs = self._needs()
        channels = list(self._numbers)
        found = find_cycle(
            {channels[number]: {channels[one] for one in _bits(after)} for number, after in needs.items()}
        )
        return cycle_words(found, by_vl=True) if found else None

    def _explore(self) -> None:
        """Finds the ways of all packets that any node sends to any node."""
        nodes, vls = self._network.nodes, self._function.followed_vls(self._network.router)
        self._starts = [
            _State(*place, vl, goal) for place in nodes for vl in vls for goal in range(len(nodes))
        ]
        pending = list(self._starts)
        options: dict[Channel, _State] = {}
        while pending:
            state = pending.pop()
            if state in self._ways:
                continue
            ways = self._ways[state] = self._function.ways(self._network, *state)
            if not ways.escapes:
                raise ValueError(f"{self._of(state)} has no port for it")
            for port, vl, goal in ways.escapes:
                self._escapes |= 1 << self._number(self._checked(state, port, vl, goal))
            for port, vl, goal in ways.options:
                options.setdefault(self._checked(state, port, vl, goal), state)
            pending += [after for _, after in self._steps(state)]
        for channel, state in options.items():
            if not self._escapes >> self._number(channel) & 1 and not self._function.options_empty:
                raise ValueError(
                    f"{self._of(state)} has it wait on port {channel[1]} VL {channel[2]}, which is nobody's escape: "
                    "needs `options_empty`"
                )

    def _of(self, state: _State) -> str:
        name = self._network.router.routing
        goal = f"node {state.goal}" if state.goal < len(self._network.nodes) else f"goal {state.goal}"
        return f"routing {name!r}: router {state.router}, for a packet to {goal} on VL {state.vl},"

    def _checked(self, state: _State, port: int, vl: int, goal: int) -> Channel:
        """The channel of a pair. Raises ValueError if there is none."""
        network, place = self._network, (state.router, port)
        home = goal < len(network.nodes) and place == network.nodes[goal]
        if not home and place not in network.neighbours:
            raise ValueError(f"{self._of(state)} takes port {port}, which does not lead there")
        if not 0 <= vl < network.router.data_vls:
            raise ValueError(f"{self._of(state)} takes VL {vl}: VLs are 0 to {network.router.data_vls - 1}")
        return (*place, vl)

    def _number(self, channel: Channel) -> int:
        return self._numbers.setdefault(channel, len(self._numbers))

    def _steps(self, state: _State) -> list[tuple[int, _State]]:
        """The channels that packets may go on to, and their states there; none at their node."""
        network = self._network
        found: dict[tuple[int, _State], None] = {}
        for port, vl, goal in (*self._ways[state].escapes, *self._ways[state].options):
            there = network.neighbours.get((state.router, port))
            if there is not None:
                found[self._number((state.router, port, vl)), _State(*there, vl, goal)] = None
        return list(found)

    def _needs(self) -> dict[int, int]:
        """For each escape channel those that a packet on it may wait for, as bits."""
        needs: dict[int, int] = {}
        waits: dict[_State, int] = {}
        for start in self._starts:
            self._follow(start, waits, needs)
        return needs

    def _follow(self, start: _State, waits: dict[_State, int], needs: dict[int, int]) -> None:
        """Adds to `waits` the escape channels for which packets of a state may wait, and those before them, to `needs`
        the same for channels. Raises ValueError for a way that comes back to a state."""
        trail: dict[_State, list[tuple[int, _State]]] = {}
        pending = [start]
        while pending:
            state = pending[-1]
            if state in waits:
                pending.pop()
                continue
            if state not in trail:
                trail[state] = self._steps(state)
                ahead = [after for _, after in trail[state] if after not in waits]
                for after in ahead:
                    if after in trail:
                        raise ValueError(
                            f"{self._of(after)} may see it come back: it could go round for ever"
                        )
                pending += ahead
                if ahead:
                    continue
            own = self._own(state)
            for channel, after in trail.pop(state):
                if self._escapes >> channel & 1:
                    needs[channel] = needs.get(channel, 0) | waits[after]
                else:
                    own |= waits[after]
            waits[state] = own
            pending.pop()

    def _own(self, state: _State) -> int:
        """The escape channels that packets of a state are admitted to."""
        found = 0
        for port, vl, _ in (*self._ways[state].escapes, *self._ways[state].options):
            found |= 1 << self._number((state.router, port, vl))
        return found & self._escapes


def _bits(number: int) -> Iterable[int]:
    while number:
        low = number & -number
        yield low.bit_length() - 1
        number ^= low
