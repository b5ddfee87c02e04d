"""A plain network for the coroutines of admission: events in a heap, faults by a random generator."""

from __future__ import annotations

import heapq
import random
import types
from collections import deque
from collections.abc import Callable

from lanikai.hdl.config import LinkConfig, RouterConfig
from lanikai.hdl.network import Network, chain, mesh, single_router
from lanikai.hdl.packet import Header, Kind
from lanikai.sim.admission import messages
from lanikai.sim.admission.agent import HostAgent, serve_router
from lanikai.sim.admission.config import AdmissionConfig
from lanikai.sim.admission.host import HostAdmission
from lanikai.sim.admission.places import HostPlace, RouterPlace
from lanikai.sim.admission.router import Release, RouterAdmission

ROUTER = RouterConfig(link=LinkConfig(flit_bits=128, vls=16), ports=6, management=True)
NETWORKS = {
    "cluster": single_router(5, router=ROUTER),
    "chain": chain(4, router=ROUTER),
    "mesh": mesh(3, 2, router=ROUTER),
}
CONFIG = AdmissionConfig(
    link_units=10,
    real_time_vls=(0, 1, 2),
    answer_cycles=2_000,
    attempts=3,
    refresh_cycles=8_000,
    refresh_misses=3,
    lease_cycles=40_000,
)
LATEST = 10_000
"""Cycles by which the copy of a packet may be late."""
HOP_CYCLES = (20, 150)


@types.coroutine
def _request(what):
    return (yield what)


class PlainPort:
    """The port of an agent or host: `RouterPort` and `HostPort`, with registers as a plain table."""

    def __init__(self, world, router=None, node=None):
        self.world, self.router, self.node = world, router, node
        self.waiting = deque()
        self.registers = {}
        self.task = None
        self._woken = False

    @property
    def cycle(self):
        return self.world.now

    def wake(self):
        self._woken = True
        if self.task is not None and self.task.until is not False:
            self.task.resume()

    def take(self):
        """The result of `next` now, and whether it has one."""
        while self.waiting:
            event = self.waiting.popleft()
            if isinstance(event, list):
                event = messages.unpack_control(event, self.world.network.router.link)
            if event is not None:
                return event, True
        woken, self._woken = self._woken, False
        return None, woken

    def deliver(self, event):
        self.waiting.append(event)
        if self.task is not None and self.task.until is not False:
            self.task.resume()

    async def next(self, until):
        return await _request(("next", until))

    async def send(self, control, route):
        flits = control.flits(route, self.world.network.router.link)
        await _request(("sleep", len(flits)))
        self.world.transport(self, flits)

    async def write_used(self, port, word):
        await _request(("sleep", 2))
        for half in (word & 0xFFFF, word >> 16):
            assert half <= self.world.config.most_units, f"router {self.router}, port {port}: {half} promised"
        self.registers["used", port] = word

    async def write_power(self, units):
        assert units >= 0
        self.registers["power"] = units

    async def write_tables(self, *place_and_tables, crossbar_input=False):
        """A router's has the port before the tables, an adapter's has one port."""
        *place, tables = place_and_tables
        await _request(("sleep", self.world.chance.choice((30, 30, 300))))
        self.registers["tables", *place, crossbar_input] = tables


class Task:
    """A coroutine that waits in `next` (`until` is a cycle or None) or sleeps (`until` False)."""

    def __init__(self, world, port, coroutine):
        self._world, self._port, self._coroutine = world, port, coroutine
        self.until = False
        self._turn = 0
        self.alive = True
        port.task = self
        world.after(0, self._step, None)

    def kill(self):
        self.alive = False
        self._coroutine.close()
        if self._port.task is self:
            self._port.task = None

    def resume(self):
        """Look in this cycle whether the result of `next` is there."""
        self._turn += 1
        self._world.after(0, self._look, self._turn)

    def _look(self, turn):
        if not self.alive or turn != self._turn or self.until is False:
            return
        event, there = self._port.take()
        if there or (self.until is not None and self.until <= self._world.now):
            self.until = False
            self._step(event)
        elif self.until is not None:
            self._world.after(self.until - self._world.now, self._look, turn)

    def _step(self, value):
        if not self.alive:
            return
        kind, argument = self._coroutine.send(value)
        if kind == "sleep":
            self._world.after(argument, self._step, None)
        else:
            self.until = argument
            self.resume()


class World:
    """A network with an agent at each router and a host at each node."""

    def __init__(self, *, network="mesh", seed=0, loss=0.0, copies=0.0, reports_lost=0.0, power=None):
        self.config = CONFIG
        self.network: Network = NETWORKS[network]
        self.chance = random.Random(seed)
        self.loss, self.copies, self.reports_lost, self.power = loss, copies, reports_lost, power
        self.now, self._heap, self._count = 0, [], 0
        self._arrived: dict[object, int] = {}
        self.routers = [PlainPort(self, router=r) for r in range(self.network.routers)]
        self.nodes = [PlainPort(self, node=n) for n in range(len(self.network.nodes))]
        self.agents: list[RouterAdmission | None] = [None] * len(self.routers)
        self.hosts: list[HostAgent | None] = [None] * len(self.nodes)
        for router in range(len(self.routers)):
            self.start_agent(router)
        for node in range(len(self.nodes)):
            self.start_host(node)
        self.run(5_000)
        self.at_rest = self.registers()
        self.adapters_at_rest = self.adapters()

    def registers(self):
        return [dict(port.registers) for port in self.routers]

    def adapters(self):
        """VL tables of each node's adapter. They stay as they are while its host is dead."""
        return [dict(port.registers) for port in self.nodes]

    def after(self, cycles: int, function: Callable, *arguments):
        self._count += 1
        heapq.heappush(self._heap, (self.now + cycles, self._count, function, arguments))

    def run(self, cycles: int):
        end = self.now + cycles
        while self._heap and self._heap[0][0] <= end:
            self.now, _, function, arguments = heapq.heappop(self._heap)
            function(*arguments)
        self.now = end

    def start_agent(self, router: int):
        admission = RouterAdmission(self.config, RouterPlace(self.network, router), power=self.power)
        self.agents[router] = admission
        Task(self, self.routers[router], serve_router(admission, self.routers[router]))

    def stop_agent(self, router: int):
        """Packets that waited to be read may be lost with it, or not."""
        self.agents[router] = None
        port = self.routers[router]
        if port.task is not None:
            port.task.kill()
        if self.chance.random() < 0.5:
            port.waiting.clear()

    def start_host(self, node: int, *, anew: bool = False):
        quiet = self.now + self.config.lease_cycles if anew else 0
        admission = HostAdmission(self.config, HostPlace(self.network, node), quiet_until=quiet)
        host = HostAgent(admission, self.nodes[node])
        self.hosts[node] = host
        Task(self, self.nodes[node], host.serve())

    def stop_host(self, node: int):
        self.hosts[node] = None
        port = self.nodes[node]
        if port.task is not None:
            port.task.kill()
        port.waiting.clear()

    def transport(self, origin: PlainPort, flits):
        """Carry a control packet: probes and releases to the next agent, or to the node behind the last router; all
        others to their node."""
        bits = self.network.router.link.flit_bits
        header = Header.unpack(sum(f << bits * i for i, f in enumerate(flits[:1])))
        hops = 1
        if origin.node is not None:
            target = self.routers[self.network.nodes[origin.node][0]]
        else:
            hop = RouterPlace(self.network, origin.router).hop(0, 15, header.destination)
            target = self.nodes[header.destination] if hop.router < 0 else self.routers[hop.router]
        if header.kind in (Kind.ACK, Kind.NACK):
            target, hops = self.nodes[header.destination], 3
        if self.chance.random() < self.loss:
            if self.chance.random() < 0.5:
                return
            # A packet with a bit that is wrong is as good as lost.
            flits = list(flits)
            flits[self.chance.randrange(4)] ^= 1 << self.chance.randrange(bits)
        self._deliver(origin, target, list(flits), hops)
        if self.chance.random() < self.copies:
            self.after(self.chance.randrange(LATEST), self._arrive, target, list(flits))

    def _deliver(self, origin, target, flits, hops):
        # In order, as on one VL.
        at = self.now + sum(self.chance.randint(*HOP_CYCLES) for _ in range(hops))
        at = self._arrived[origin, target] = max(at, self._arrived.get((origin, target), 0) + 1)
        self.after(at - self.now, self._arrive, target, flits)

    def _arrive(self, target: PlainPort, event):
        if target.node is not None and target.task is None:
            return
        target.deliver(event)

    def send_last(self, request):
        """The last data packet of a connection goes its way, and each router reports it."""
        name = request.name
        router, in_port = self.network.nodes[name.source]
        vl, delay = request.vl, 0
        while router >= 0:
            hop = RouterPlace(self.network, router).hop(in_port, vl, name.destination)
            delay += self.chance.randint(*HOP_CYCLES)
            if self.chance.random() >= self.reports_lost:
                release = Release(*name, request.units, in_port, hop.out_port)
                self.after(delay, self._arrive, self.routers[router], release)
            router, in_port, vl = hop.router, hop.in_port, hop.vl

    def path(self, request):
        """Routers of a connection."""
        router, in_port = self.network.nodes[request.name.source]
        vl, routers = request.vl, []
        while router >= 0:
            routers.append(router)
            hop = RouterPlace(self.network, router).hop(in_port, vl, request.name.destination)
            router, in_port, vl = hop.router, hop.in_port, hop.vl
        return routers
