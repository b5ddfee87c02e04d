"""Agents and mappers on a plain network, in the simulated time of `support.firmware.scheduler`: hosts may die."""

from __future__ import annotations

from lanikai.sim.host.am.mapper.agent import Agent
from lanikai.sim.host.am.mapper.config import MapperConfig
from lanikai.sim.host.am.mapper.mapper import Mapper
from lanikai.sim.host.am.mapper.routes import deadlocks
from lanikai.sim.host.am.mapper.words import Word

from support.firmware.scheduler import World

HOP_CYCLES = 30
PATIENCE = dict(timeout_us=40, watch_us=500, lease_us=20_000, drain_us=300)
"""Settings that wait a tenth of what mappers do by default."""


class PlainPort:
    """A `RawPort` on a plain network."""

    def __init__(self, nodes, node):
        self.nodes, self.node, self.dead = nodes, node, False
        self.hear = lambda route, data: None

    async def send(self, route, data):
        world, network = self.nodes.world, self.nodes.network
        assert len(data) <= 40
        await world.sleep(20)
        self.nodes.packets += 1
        self.nodes.step(self.node)
        if self.dead:
            return
        there, left = network.walk(self.node, route)
        if there is None or self.nodes.random.random() < self.nodes.loss:
            return
        port = self.nodes.ports[there]

        async def arrive():
            await world.sleep(HOP_CYCLES * 6)
            if not port.dead:
                port.hear(left, data)

        world.spawn(arrive(), "packet")

    async def set_route(self, node, route):
        await self.nodes.world.sleep(10)
        table = self.nodes.tables[self.node]
        table.pop(node, None)
        if route is not None:
            table[node] = route
        self.nodes.changed()


class MappedNodes:
    """All hosts of a plain network with their agents, and mappers on the candidates.

    - `tables`: the routes that each node's driver has.
    - `circles`: times that the routes in use, together, could have deadlocked. They are looked at after each
      `look_every`-th change.
    - `step(node)`: called with each packet.
    """

    def __init__(self, network, random, *, candidates=(0,), loss=0.0, look_every=1, **changes):
        self.network, self.random, self.loss = network, random, loss
        self.world = World()
        self.config = MapperConfig(candidates=candidates, **PATIENCE | changes)
        self.packets = self.changes = self.circles = 0
        self.look_every = look_every
        self.step = lambda node: None
        self.tables, self.ports, self.agents, self.mappers = {}, {}, {}, {}
        for node in sorted(network.homes):
            self.add(node)

    def add(self, node):
        self.tables[node] = {}
        self.ports[node] = port = PlainPort(self, node)
        agent = Agent(port, self.world, self.config, self.network.form, clock_hz=37_500_000)
        self.agents[node] = agent
        if node in self.config.candidates:
            self.mappers[node] = mapper = Mapper(agent, self.world)
            mapper.start()

    def die(self, node):
        """The node's software ends; its cable stays."""
        self.ports[node].dead = True
        self.network.deaf.add(node)

    def words(self) -> dict[tuple[int, int], Word]:
        """The words of all routes that are in use."""
        form, mask = self.network.form, (1 << self.network.form.hop_bits) - 1
        found = {}
        for node, table in self.tables.items():
            for there, route in table.items():
                hops = []
                while route & mask != form.end:
                    hops.append(route & mask)
                    route >>= form.hop_bits
                found[node, there] = tuple(hops)
        return found

    def changed(self):
        self.changes += 1
        if self.changes % self.look_every == 0:
            lead = min(node for node in self.network.homes if node not in self.network.deaf)
            self.circles += deadlocks(self.network.map(lead), self.words()) is not None

    def settled(self, lead=None):
        """Whether all that live have routes to all that live, which lead there, of the present network's map."""
        alive = [node for node in self.network.homes if not self.ports[node].dead]
        lead = min(alive) if lead is None else lead
        right = self.network.map(lead)
        reached = set(right.hosts)
        if any(self.agents[node].tag != right.tag for node in reached):
            return False
        for node in reached:
            table = {there: route for there, route in self.tables[node].items() if there in reached}
            if set(table) != reached - {node}:
                return False
            for there, route in table.items():
                found, left = self.network.walk(node, route)
                assert found == there and self.network.form.at_end(left)
        return True

    async def until_settled(self, *, lead=None, most=400):
        """Wait until `settled`. Fails after `most` looks of the mapper."""
        for _ in range(most):
            if self.settled(lead):
                return
            await self.world.sleep(self.agents[min(self.agents)].cycles(self.config.watch_us))
        raise AssertionError(
            f"the network is not mapped: {[(m.agent.node, m.maps) for m in self.mappers.values()]}"
        )
