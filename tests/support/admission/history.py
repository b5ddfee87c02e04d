"""A random history of admission: requests that race, faults at any moment, and what must hold then and at the end."""

from __future__ import annotations

import random
from functools import cache

from lanikai.hdl.config import ConfigError
from lanikai.sim.admission.host import State
from lanikai.sim.admission.tables import Tables, link_tables

from .world import CONFIG, LATEST, NETWORKS, World

STEP = 2_500
SLACK = 10_000
"""Cycles by which packets, waits for tables and agents' work may be late, beyond LATEST: paths of four routers, with
at most some ten packets before each agent."""
LEAK_CYCLES = CONFIG.lease_cycles + LATEST + SLACK
"""The bound: nothing is reserved for a source this long after it has stopped, or its connection has ended. If an agent
has begun anew since then, it counts from there: probes may have waited for it."""


@cache
def _tables(units: tuple[int, ...], peak: int) -> Tables:
    return link_tables(CONFIG, units, peak)


class History:
    """One history by its seed. `log` tells what happened in it."""

    def __init__(self, seed: int) -> None:
        self.seed, self.chance = seed, random.Random(seed)
        chance = self.chance
        self.agents_die = chance.random() < 0.4
        self.hosts_die = chance.random() < 0.4
        self.world = World(
            network=chance.choice(list(NETWORKS)),
            seed=seed,
            loss=chance.choice((0, 0, 0.05, 0.3)),
            copies=chance.choice((0, 0, 0.1)),
            reports_lost=chance.choice((0, 0.2)),
            power=chance.choice((None, 18)),
        )
        self.agent_deaths = self.agent_began = 0
        self.log: list[tuple] = []
        self.active: list = []
        self.ended: dict[tuple, int] = {}
        self.requests: list = []
        self.dead_since: dict[int, int] = {}
        self.over: list = []
        self.asked: set[tuple] = set()
        self.sound = not (self.agents_die or self.hosts_die or self.world.loss or self.world.reports_lost)

    def note(self, *what):
        self.log.append((self.world.now, *what))

    def run(self) -> None:
        steps = self.chance.randint(8, 24)
        for _ in range(steps):
            self._step()
            self._go(self.chance.choice((0, 200, STEP, STEP, 3 * STEP)))
        self._finish()

    def _go(self, cycles):
        self.world.run(cycles)
        self._watch()

    def _step(self):
        world, chance = self.world, self.chance
        roll = chance.random()
        if roll < 0.55:
            for _ in range(chance.choice((1, 1, 2, 4))):
                self._ask()
        elif roll < 0.75:
            if self.active:
                self._close(self.active.pop(chance.randrange(len(self.active))))
        elif roll < 0.85 and self.hosts_die:
            node = chance.randrange(len(world.hosts))
            if world.hosts[node] is None:
                self._start_host(node)
            else:
                self._stop_host(node)
        elif roll < 0.95 and self.agents_die:
            router = chance.randrange(len(world.agents))
            if world.agents[router] is None:
                self._start_agent(router)
            else:
                self.note("agent dies", router)
                world.stop_agent(router)
                self.agent_deaths += 1
        else:
            self._go(chance.choice((STEP, 10 * STEP)))

    def _start_agent(self, router):
        self.note("agent begins", router)
        self.agent_began = self.world.now
        self.world.start_agent(router)

    def _start_host(self, node):
        self.note("host begins", node)
        self.dead_since.pop(node, None)
        self.world.start_host(node, anew=True)

    def _stop_host(self, node):
        self.note("host dies", node)
        self.world.stop_host(node)
        self.dead_since[node] = self.world.now
        for request in [r for r in self.active if r.name.source == node]:
            self._end(request)
            self.active.remove(request)

    def _end(self, request):
        self.ended.setdefault((request.name, request.incarnation), self.world.now)
        self.over.append(request)

    def _ask(self):
        world, chance = self.world, self.chance
        node = chance.choice([n for n, host in enumerate(world.hosts) if host is not None] or [None])
        if node is None:
            return
        destination = chance.choice([n for n in range(len(world.hosts)) if n != node])
        units = chance.randint(1, 7)
        try:
            request = world.hosts[node].open(
                destination=destination,
                flow=chance.randrange(6),
                units=units,
                peak=units + chance.randrange(5),
                vl=chance.choice(CONFIG.real_time_vls),
            )
        except ConfigError:
            return
        self.note("asks", request.name, request.units, request.state.name)
        self.requests.append(request)
        self.asked.add((request.name, request.incarnation))
        self.active.append(request)

    def _close(self, request):
        last = request.state is State.OPEN and self.chance.random() < 0.6
        self.note("closes", request.name, request.state.name, last)
        if last:
            self.world.send_last(request)
        self.world.hosts[request.name.source].close(request, sent_last=last)
        self._end(request)

    def _watch(self):
        """Check all that holds at every moment."""
        world, now = self.world, self.world.now
        for request in self.active:
            waits = now - request.incarnation if request.state is State.ASKING else 0
            assert waits <= CONFIG.attempts * CONFIG.answer_cycles + SLACK, (
                f"{request} waits for {waits} cycles"
            )
            if request.state not in (State.ASKING, State.OPEN):
                assert not self.sound or request.state is State.REFUSED, f"{request}: nothing is lost"
                self._end(request)
        self.active = [r for r in self.active if r.state in (State.ASKING, State.OPEN)]
        for router, agent in enumerate(world.agents):
            if agent is None:
                continue
            for name, record in agent.records.items():
                assert (name, record.incarnation) in self.asked, f"router {router} holds {name}: nobody asked"
                ended = self.ended.get((name, record.incarnation))
                if ended is not None:
                    leak = now - max(ended, self.agent_began)
                    assert leak <= LEAK_CYCLES, f"router {router} holds {name} {leak} cycles after its end"
        for node, host in enumerate(world.hosts):
            port = world.nodes[node]
            if host is not None and port.task.until is not False and not port.waiting:
                self._check_adapter(node, port)
        if self.agent_deaths:
            return
        for request in self.active:
            if request.state is State.OPEN:
                for router in world.path(request):
                    record = world.agents[router].records.get(request.name)
                    assert record is not None and record.incarnation == request.incarnation, (
                        f"router {router} holds nothing for {request.name}, which is open"
                    )
                # It may have been asked for after that: the destination's router answers the first probe.
                opened = request.incarnation + CONFIG.attempts * CONFIG.answer_cycles
                since = max(self.dead_since.get(request.name.destination, now), opened)
                assert now - since <= (CONFIG.refresh_misses + 2) * CONFIG.refresh_cycles, (
                    f"{request.name} is open {now - since} cycles after the death of its destination"
                )
        for request in list(self.over):
            self._check_over(request)

    def _check_adapter(self, node, port):
        """An agent that waits has written the tables of all that its host asks for or has, and of nothing else."""
        units, peak = [0] * 15, 0
        for request in self.active:
            if request.name.source == node:
                units[request.vl] += request.units
                peak += request.peak
        expected = _tables(tuple(units), peak)
        assert port.registers == {("tables", False): expected}, f"VL tables of adapter {node}: {expected}"

    def _check_over(self, request):
        """No router holds a connection whose release was answered, or must have been."""
        world, now = self.world, self.world.now
        ended = self.ended.get((request.name, request.incarnation), now)
        if now - ended > 2 * LATEST + SLACK:
            self.over.remove(request)  # a copy of its probe may have come late; its lease is watched
        elif request.released or (self.sound and request.settled and now - ended > SLACK):
            for router in world.path(request):
                record = world.agents[router].records.get(request.name)
                assert record is None or record.incarnation != request.incarnation, (
                    f"router {router} holds {request.name}, which is over"
                )

    def _finish(self):
        """Everything that lives begins anew or closes; then all registers are as before."""
        world = self.world
        for router, agent in enumerate(world.agents):
            if agent is None:
                self._start_agent(router)
        for request in self.active:
            if world.hosts[request.name.source] is not None:
                self._close(request)
        self.active = []
        for _ in range(LEAK_CYCLES // (4 * STEP) + 2):
            self._go(4 * STEP)
        assert all(not agent.records for agent in world.agents)
        assert world.registers() == world.at_rest
        adapters = world.adapters()
        for node, host in enumerate(world.hosts):
            if host is not None:
                assert adapters[node] == world.adapters_at_rest[node]
                assert host.admission.ledger.used_word(0) == 0 and host.admission.deadline is None
        self._go(CONFIG.lease_cycles)
        assert all(agent.deadline is None for agent in world.agents)
