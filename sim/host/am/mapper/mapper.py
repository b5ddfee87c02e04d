"""The mapper of a node: it maps the network, gives out routes, and looks from time to time whether the map is right."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable

from lanikai.firmware.ports import Scheduler

from .agent import Agent, Superseded
from .discover import discover
from .network_map import Host, MapError, NetworkMap, Switch
from .prober import Probe
from .routes import Pairs, deadlocks, order_after, shortest, to_withdraw, up_down_words
from .search import Search
from .wire import MOST_ROUTES, NO_ROUTE, NO_TAG, Kind, MapPacket
from .words import Word

__all__ = ["Mapper"]


class Mapper:
    """The mapper of a node with an `Agent`. `start` spawns it; it maps while no candidate with a lower number does.

    - `map`, `order`, `words`: the last map, its order for routes, and the words of pairs of hosts that were given out.
    - `maps`: maps made so far. `probes`: probes of the last search.
    - `stopped`: set to end the mapper, in whatever it does.

    While a network changes during a search, the search may fail, or its map be wrong. Nothing hangs, as each question
    ends. The next look finds what is wrong, and the mapper maps again.
    """

    def __init__(self, agent: Agent, clock: Scheduler) -> None:
        self.agent = agent
        self.map: NetworkMap | None = None
        self.order: list[int] = []
        self.words: dict[tuple[int, int], Word] = {}
        self.maps = self.probes = 0
        self.stopped = False
        self.told: Callable[[str], None] = lambda text: None
        self._clock = clock

    def start(self) -> None:
        """Spawn the mapper. Raises ValueError if its node is no candidate."""
        if self.agent.node not in self.agent.config.candidates:
            raise ValueError(f"node {self.agent.node}: candidates are {self.agent.config.candidates}")
        self._clock.spawn(self._run(), f"mapper.mapper{self.agent.node}")

    async def _run(self) -> None:
        agent, config = self.agent, self.agent.config
        # Those with lower numbers begin first.
        turn = config.candidates.index(agent.node)
        if turn:
            await self._clock.sleep(turn * agent.cycles(config.lease_us))
        while not self.stopped:
            try:
                if not agent.superseded and not await self.look():
                    await self.remap()
            except (MapError, Superseded) as error:
                self.told(str(error))
            rest = config.lease_us if agent.superseded else config.watch_us
            await self._clock.sleep(agent.cycles(rest))

    async def look(self) -> bool:
        """Whether the network is as the map says, and all hosts have its routes. Raises Superseded."""
        network = self.map
        if network is None:
            return False
        expected = self.expected(network)
        answers = await self.agent.ask([probe for probe, _ in expected])
        right = all(answer == host for answer, (_, host) in zip(answers, expected, strict=True))
        return right and all(self.agent.tags.get(node) == network.tag for node in network.hosts)

    def expected(self, network: NetworkMap) -> list[tuple[Probe, int | None]]:
        """The probes of a look, by every port of a map, with the hosts that must answer; None for silence."""
        form = self.agent.format
        me = self.agent.node
        start = network.hosts[me][0]
        ways: dict[int, Word] = {start: ()}
        waiting = deque([start])
        while waiting:
            kind = waiting.popleft()
            for port, entry in enumerate(network.rows[kind]):
                if isinstance(entry, Switch) and entry.kind not in ways:
                    ways[entry.kind] = (*ways[kind], port)
                    waiting.append(entry.kind)
        near = {kind: shortest(network, kind) for kind in ways}
        found: list[tuple[Word, int, int | None]] = []
        for kind, row in enumerate(network.rows):
            host = min(near[kind], key=lambda node: (len(near[kind][node]), node))
            for port, entry in enumerate(row):
                way = (*ways[kind], port)
                if isinstance(entry, Host):
                    found.append((way, kind, entry.node))
                elif isinstance(entry, Switch):
                    there = near[entry.kind]
                    end = min(there, key=lambda node: (len(there[node]), node))
                    found.append(((*way, *there[end]), network.hosts[end][0], end))
                elif entry is None:
                    found.append((way, kind, None))
                    for x in range(form.ports):
                        found.append(((*way, x, *near[kind][host]), network.hosts[host][0], None))
        probes = [(Probe(word, near[kind][me]), host) for word, kind, host in found]
        return [one for one in probes if form.fits(one[0].word) and form.fits(one[0].back)]

    async def remap(self) -> None:
        """Map the network, and give out routes if it has changed. Raises MapError and Superseded."""
        agent = self.agent
        search = Search(agent)
        network = (await discover(search)).canonical()
        self.maps += 1
        self.probes = search.asked
        old = self.map
        # What hosts have is known only if the mapper itself has given it out.
        known = old is not None and all(
            agent.tags.get(node) == (old.tag if node in old.hosts else NO_TAG) for node in network.hosts
        )
        order = order_after(network, old if known else None, self.order)
        words = up_down_words(network, order, agent.format)
        circle = deadlocks(network, words)
        assert circle is None, f"up*/down* routes with the circle {circle}"
        if known:
            gone = to_withdraw(network, order, self.words, words)
            routes = {
                node: [(there, NO_ROUTE) for here, there in gone if here == node] for node in network.hosts
            }
            await self._give(network, words, routes)
            if gone:
                await self._clock.sleep(agent.cycles(agent.config.drain_us))
        elif any(agent.tags.get(node) not in (NO_TAG, network.tag) for node in network.hosts):
            await self._reset(network, words)
        form, hosts = agent.format, network.hosts
        routes = {
            node: [
                *((there, form.route(words[node, there])) for there in hosts if there != node),
                *((there, NO_ROUTE) for there in (old.hosts if old else {}) if there not in hosts),
            ]
            for node in hosts
        }
        before, self.map, self.order = self.words, network, order
        if known:
            routes = {node: self._changed(node, pairs, before, hosts) for node, pairs in routes.items()}
        self.words = dict(words)
        await self._give(network, words, routes, tag=network.tag)
        self.told(f"node {agent.node}: {network.switches} switches, {len(hosts)} hosts, {self.probes} probes")

    def _changed(
        self, node: int, pairs: list[tuple[int, int]], before: Pairs, hosts: object
    ) -> list[tuple[int, int]]:
        """Those of a node's routes that are not as `before`; all for a node that had none."""
        if not any(source == node for source, _ in before):
            return pairs
        form = self.agent.format
        return [
            (there, route)
            for there, route in pairs
            if ((node, there) in before and form.route(before[node, there])) != route
        ]

    async def _reset(self, network: NetworkMap, words: Pairs) -> None:
        """Have all hosts give up their routes, and wait until packets on them are gone."""
        reset = MapPacket(kind=Kind.RESET, node=self.agent.node, number=0)
        for node in sorted(network.hosts):
            await self._command(network, words, node, reset)
        await self._clock.sleep(self.agent.cycles(self.agent.config.drain_us))

    async def _give(
        self,
        network: NetworkMap,
        words: Pairs,
        routes: dict[int, list[tuple[int, int]]],
        *,
        tag: int = 0,
    ) -> None:
        """Give hosts routes, and then the map's tag if it is not 0.

        Raises MapError if a host does not take them, and Superseded if another mapper is at work.
        """
        for node in sorted(routes):
            pairs = routes[node]
            for first in range(0, len(pairs), MOST_ROUTES):
                part = tuple(pairs[first : first + MOST_ROUTES])
                packet = MapPacket(kind=Kind.ROUTES, node=self.agent.node, number=0, routes=part)
                await self._command(network, words, node, packet)
            if tag:
                last = MapPacket(kind=Kind.ROUTES, node=self.agent.node, number=0, tag=tag)
                await self._command(network, words, node, last)
                self.agent.tags[node] = tag

    async def _command(self, network: NetworkMap, words: Pairs, node: int, packet: MapPacket) -> None:
        me = self.agent.node
        own: Word = (network.hosts[me][1],)
        word, back = words.get((me, node), own), words.get((node, me), own)
        reply = await self.agent.command(word, back, packet)
        if self.agent.superseded:
            raise Superseded(f"node {me}: node {self.agent.master} maps")
        if reply is None:
            raise MapError(f"node {node} takes no routes")
        if reply.refused:
            raise MapError(f"node {node} refuses routes")
