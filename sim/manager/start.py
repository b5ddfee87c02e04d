"""Managers as they stand on a node: local manager, calls, GM port, and on one node the master."""

from __future__ import annotations

from collections.abc import Sequence

from lanikai.hdl.network import Network

from ..host.gm import Gm
from ..host.gm_port import GmPort
from .capacity import ClusterCapacity, Pace, cluster_capacity, node_capacity
from .config import ManagerConfig
from .ledger import Ledger
from .local import NodeManager
from .master import Master
from .post import GmPost
from .rpc import Calls
from .sharing import POLICIES
from .wire import Answer, Envelope, Status

__all__ = ["Manager", "start_manager", "start_managers"]


class Manager(NodeManager):
    """A node's manager process on its open GM `port`. `master`: the master, if it is on this node."""

    def __init__(self, gm: Gm, port: GmPort, *, config: ManagerConfig, capacity: ClusterCapacity) -> None:
        self._port = port
        self.post = GmPost(gm, port, self._take)
        self.calls = Calls(
            gm.bus,
            node=gm.node,
            post=self.post,
            serve=self._serve,
            restarted=self._restarted,
            answer_cycles=int(config.answer_ticks * gm.nic.tick_cycles),
            tries=config.tries,
        )
        pace = Pace.of(gm.nic)
        super().__init__(gm, config=config, calls=self.calls, pace=pace, nodes=capacity.nodes)
        self.master = None
        if config.master == gm.node:
            self.master = Master(
                gm.bus,
                node=gm.node,
                ledger=Ledger(capacity),
                policy=POLICIES[config.best_effort],
                pace=pace,
                longest_idt_ticks=gm.nic.max_idt_ticks,
                calls=self.calls,
                decide=lambda: gm.spend(config.decide_ns),
                retry_cycles=int(config.retry_ticks * gm.nic.tick_cycles),
            )

    async def open(self) -> None:
        """Begin to answer."""
        await self.post.start()
        self.start()
        if self.master is not None:
            self._gm.bus.spawn(self.master.start(), f"manager[{self.node}].master")

    async def stop(self) -> None:
        """End the manager: its port is closed, it answers nobody, and calls of programs fail."""
        self.ended = True
        if self.master is not None:
            self.master.ended = True
        await self._port.close()

    async def _take(self, message: bytes) -> None:
        if not self.ended:
            await self.calls.take(message)

    async def _serve(self, call: Envelope) -> Answer:
        if not call.kind.to_master:
            return await self.serve(call)
        if self.master is None:
            return Answer(status=Status.NO_MASTER)
        return await self.master.serve(call)

    async def _restarted(self, node: int) -> None:
        if self.master is not None:
            await self.master.restarted(node)


async def start_manager(gm: Gm, network: Network, config: ManagerConfig | None = None) -> Manager:
    """Start the manager of the node of `gm`. Raises what `Gm.open_port` raises: its port must be free."""
    config = ManagerConfig() if config is None else config
    node = node_capacity(gm.nic, shared_mb_per_s=config.shared_mb_per_s)
    port = await gm.open_port(config.port)
    manager = Manager(gm, port, config=config, capacity=cluster_capacity(network, gm.nic, node))
    await manager.open()
    return manager


async def start_managers(
    hosts: Sequence[Gm], network: Network, config: ManagerConfig | None = None
) -> list[Manager]:
    """Start the managers of all `hosts`, the nodes of `network` in their order; they are returned in it."""
    return [await start_manager(gm, network, config) for gm in hosts]
