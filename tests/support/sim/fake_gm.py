"""GM without cards: ports whose messages cross a network that tests may make lose, repeat and delay them.

The managers run on it unchanged.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import Any

import numpy as np
from lanikai.firmware.gm import GmConfig
from lanikai.hdl.config import NicConfig, RouterConfig, preset
from lanikai.hdl.network import Network, chain, single_router
from lanikai.sim.host.errors import ClosedPortError, UnknownNodeError
from lanikai.sim.host.gm.message import Received, SendHandle
from lanikai.sim.host.memory import Buffer
from lanikai.sim.manager.client import BandwidthClient
from lanikai.sim.manager.config import ManagerConfig
from lanikai.sim.manager.flows import FlowId
from lanikai.sim.manager.start import Manager, start_manager
from lanikai.sim.manager.wire import Envelope, Kind, Reply

from support.firmware.scheduler import World

ROUTER = preset(RouterConfig, "lanai4")
WIRE_CYCLES = 500
THESIS_MB_PER_S = 4096 / 48
"""Most that a node receives in the thesis, which knows one sender's peak alone."""

Fate = Callable[[int, int, bytes], list[int]]
"""Fate of a message from a node to a node: after how many cycles it arrives, each time that it does."""


def lose(kind: Kind, reply: Reply, times: int) -> Fate:
    """A network that loses the first so many messages of a kind."""
    left = [times]

    def fate(source: int, target: int, message: bytes) -> list[int]:
        envelope = Envelope.unpack(message)
        if (envelope.kind, envelope.reply) == (kind, reply) and left[0]:
            left[0] -= 1
            return []
        return [WIRE_CYCLES]

    return fate


class FakeGm:
    """A node's `Gm`, as far as managers use it. `idts`: IDTs that flows have been set to, by (port, node, target,
    priority)."""

    def __init__(self, cluster: FakeCluster, node: int) -> None:
        self.cluster, self.node, self.nic = cluster, node, preset(NicConfig, "lanai4")
        self.bus = _Bus(cluster.world, node)
        self.ports: dict[int, FakePort] = {}
        self.idts: dict[tuple[int, int, int, int], int] = {}
        self._closed: list[Callable[[int], None]] = []
        self.died: list[Callable[[int], None]] = []
        self.records: dict[str, Any] = {}
        self.gm = GmConfig()

    async def spend(self, nanoseconds: int) -> None:
        if nanoseconds:
            await self.cluster.world.sleep(nanoseconds * 33 // 1000 + 1)

    async def open_port(self, number: int) -> FakePort:
        assert number not in self.ports
        self.ports[number] = FakePort(self, number)
        return self.ports[number]

    def port(self, number: int) -> FakePort:
        if number not in self.ports:
            raise ClosedPortError(f"port {number} of node {self.node} is not open: open it first")
        return self.ports[number]

    def when_closed(self, callback: Callable[[int], None]) -> None:
        self._closed.append(callback)

    def when_node_died(self, callback: Callable[[int], None]) -> None:
        self.died.append(callback)

    def check_target(self, port: int, node: int, target: int, priority: int) -> None:
        if not 0 <= node < len(self.cluster.network.nodes):
            raise UnknownNodeError(f"node {self.node} has no route to node {node}")

    def forget(self, number: int) -> None:
        del self.ports[number]
        self.idts = {flow: idt for flow, idt in self.idts.items() if flow[0] != number}
        for callback in self._closed:
            callback(number)


class _Bus:
    """`Scheduler` with a node."""

    def __init__(self, world: World, node: int) -> None:
        self.world, self.node = world, node
        self.spawn, self.flag, self.sleep = world.spawn, world.flag, world.sleep

    @property
    def cycle(self) -> int:
        return self.world.cycle


class FakePort:
    """A port: messages come in the order of their arrival."""

    receive_tokens = 32

    def __init__(self, gm: FakeGm, number: int) -> None:
        self.gm, self.number, self.is_open = gm, number, True
        self.inbox: deque[tuple[int, bytes]] = deque()
        self._arrival = gm.cluster.world.flag()

    async def dma_malloc(self, length: int) -> Buffer:
        return Buffer(4096, length, np.zeros(length, np.uint8))

    async def provide_receive_buffer(self, buffer: Buffer, priority: int = 0) -> None:
        pass

    async def send(
        self, buffer: Buffer, length: int, *, node: int, port: int, priority: int, callback: Any
    ) -> SendHandle:
        if not self.is_open:
            raise ClosedPortError("closed")
        cluster, message = self.gm.cluster, buffer.read(length)
        cluster.messages += 1
        for delay in cluster.fate(self.gm.node, node, message):
            cluster.world.at(cluster.world.cycle + delay, lambda: cluster.deliver(node, port, message))
        handle = SendHandle("", cluster.world.flag(), cluster.world.cycle, callback)
        cluster.world.at(cluster.world.cycle + WIRE_CYCLES, lambda: handle.finish(None, cluster.world.cycle))
        return handle

    async def receive(self) -> Received:
        while not self.inbox:
            if not self.is_open:
                raise ClosedPortError("closed")
            self._arrival.clear()
            await self._arrival.wait()
        node, message = self.inbox.popleft()
        buffer = await self.dma_malloc(len(message))
        buffer.write(message)
        return Received(buffer, len(message), node, self.number, 1, self.gm.cluster.world.cycle)

    def put(self, message: bytes) -> None:
        self.inbox.append((0, message))
        self._arrival.set()

    async def set_idt(self, *, node: int, port: int, priority: int = 0, ticks: int) -> None:
        await self.gm.cluster.world.sleep(200)
        if not self.is_open:
            raise ClosedPortError("closed")
        self.gm.idts[self.number, node, port, priority] = ticks

    async def close(self) -> None:
        self.is_open = False
        self._arrival.set()
        await self.gm.cluster.world.sleep(100)
        self.gm.forget(self.number)


class FakeCluster:
    """`nodes` nodes on one switch, or a switch each in a row (`chained`).

    - `config`: of all managers, or a function of the node; by default one as of the thesis.
    - `run(main)`: starts managers on all nodes except those `without`, then runs `main(self)`.
    - `fate`: the fate of a message.
    - `messages`: how many were sent.
    """

    def __init__(
        self,
        nodes: int = 4,
        *,
        chained: bool = False,
        config: ManagerConfig | Callable[[int], ManagerConfig] | None = None,
        without: tuple[int, ...] = (),
        **changes: Any,
    ) -> None:
        self.world = World()
        self.fate: Fate = lambda source, target, message: [WIRE_CYCLES]
        self.messages = 0
        self.network: Network = (
            chain(nodes, router=ROUTER.replace(ports=3))
            if chained
            else single_router(nodes, router=ROUTER.replace(ports=max(2, nodes)))
        )
        self.gms = [FakeGm(self, node) for node in range(nodes)]
        same = ManagerConfig(**{"receive_mb_per_s": THESIS_MB_PER_S, **changes}) if config is None else config
        self._config = same if callable(same) else lambda node: same
        self._without = without
        self.managers: list[Manager] = []

    @property
    def master(self) -> Any:
        """The master that leads; if none does, the last that did."""
        masters = [one._master for one in self.managers if one is not None]
        return max(masters, key=lambda master: (master.leading, master._copies.ballot))

    def record(self, node: int) -> Any:
        """The record that the manager of a node leaves with the driver."""
        return self.gms[node].records["bandwidth manager"]

    def newest(self) -> Any:
        """The newest copy of the ledger that any node has."""
        replicas = [gm.records["bandwidth manager"].replica for gm in self.gms if gm.records]
        return max(replicas, key=lambda replica: replica.version)

    def card_rate(self, flow: FlowId) -> float:
        """Bytes a second that a card lets a flow send."""
        idts = self.gms[flow.source].idts
        idt = idts.get((flow.source_port, flow.target, flow.target_port, flow.priority), 0)
        return 4096 * 2_000_000 / max(idt, 96)

    def holding(self) -> list[FlowId]:
        """Every flow that its node holds to be premium or best-effort."""
        records = [gm.records["bandwidth manager"] for gm in self.gms if gm.records]
        return [flow for record in records for flow in (*record.premium, *record.best_effort)]

    def in_force(self) -> dict[FlowId, float]:
        """The bandwidth that the cards let all of these send."""
        return {flow: self.card_rate(flow) for flow in self.holding()}

    def reboot(self, node: int) -> None:
        """Stop a node for good, with its card, and put one that knows nothing in its place."""
        manager = self.managers[node]
        manager.ended = manager._master.ended = True
        for port in self.gms[node].ports.values():
            port.is_open = False
            port._arrival.set()
        self.gms[node] = FakeGm(self, node)

    def found_dead(self, at: int, node: int) -> None:
        """Tell that GM on node `at` has found another one dead."""
        for callback in self.gms[at].died:
            callback(node)

    def deliver(self, node: int, port: int, message: bytes) -> None:
        if port in self.gms[node].ports:
            self.gms[node].ports[port].put(message)

    async def client(self, node: int, port: int = 0) -> BandwidthClient:
        """A client on an open port."""
        gm = self.gms[node]
        open_port = gm.ports[port] if port in gm.ports else await gm.open_port(port)
        return BandwidthClient(self.managers[node], open_port)

    async def start(self, node: int) -> Manager:
        """Start the manager of a node (again)."""
        return await start_manager(self.gms[node], self.network, self._config(node))

    def run(self, main: Callable[[FakeCluster], Any], limit: int = 500_000_000) -> Any:
        async def everything() -> Any:
            for node in range(len(self.gms)):
                if node not in self._without:
                    self.managers.append(await self.start(node))
                else:
                    self.managers.append(None)  # type: ignore[arg-type]
            await self.world.sleep(20 * WIRE_CYCLES)
            return await main(self)

        return self.world.run(everything(), limit)
