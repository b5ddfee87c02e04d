"""The managers of a node as they stand: local manager, calls, GM port, and the master, which leads on one node."""

from __future__ import annotations

from collections.abc import Sequence

from lanikai.hdl.network import Network

from ..bandwidth.pace import Pace
from ..host.gm.library import Gm
from ..host.gm.port import GmPort
from .capacity import ClusterCapacity
from .config import ManagerConfig
from .copies import Copies, Voter
from .ledger import Ledger
from .local import NodeManager
from .master import Master
from .plan import managed_capacity
from .post import GmPost
from .record import NodeRecord, take_over
from .rpc import Calls
from .sharing import POLICIES
from .wire import Answer, Envelope, Kind, Status

__all__ = ["Manager", "start_manager", "start_managers"]


class Manager(NodeManager):
    """A node's manager process on its open GM `port`, with the node's `record`."""

    def __init__(
        self, gm: Gm, port: GmPort, *, config: ManagerConfig, capacity: ClusterCapacity, record: NodeRecord
    ) -> None:
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
            memory=record.calls,
        )
        copies = Copies(gm.bus, node=gm.node, nodes=range(capacity.nodes), calls=self.calls, record=record)
        pace = Pace.of(gm.nic, by_bytes=gm.gm.charge == "bytes")
        super().__init__(
            gm,
            config=config,
            calls=self.calls,
            pace=pace,
            nodes=capacity.nodes,
            record=record,
            voter=Voter(gm.node, record, copies.depose),
        )
        self._master = Master(
            gm.bus,
            node=gm.node,
            ledger=Ledger(capacity),
            policy=POLICIES[config.best_effort],
            pace=pace,
            longest_idt_ticks=gm.nic.max_idt_ticks,
            lease_cycles=int(config.lease_ticks * gm.nic.tick_cycles),
            copies=copies,
            leader=lambda: self.leader,
            calls=self.calls,
            decide=lambda: gm.spend(config.decide_ns),
            retry_cycles=int(config.retry_ticks * gm.nic.tick_cycles),
        )

    @property
    def master(self) -> Master | None:
        """The master, if it is on this node as far as this node knows."""
        return self._master if self._master.leading else None

    async def open(self) -> None:
        """Begin to answer."""
        await self.post.start()
        self._gm.when_node_died(self._node_died)
        await self.start()
        if self.leader == self.node:
            self._gm.bus.spawn(self._master.start(), f"manager[{self.node}].master")

    async def stop(self) -> None:
        """End the manager: its port is closed, it answers nobody, and calls of programs fail.

        Its record stays: its flows go on at their rates, and one that is started again takes over.
        """
        if self.ended:
            return
        self.ended = True
        self._master.ended = True
        await self._port.close()

    async def _take(self, message: bytes) -> None:
        if not self.ended:
            await self.calls.take(message)

    async def _serve(self, call: Envelope) -> Answer:
        if call.kind.to_master:
            return await self._master.serve(call)
        if call.kind is Kind.RENEW:
            return await self._master.renew(call)
        if call.kind is Kind.PING:
            return Answer(status=Status.OK if self._master.leading else Status.NO_MASTER)
        return await self.serve(call)

    def _node_died(self, node: int) -> None:
        """Tell the master that GM on this node has found a node dead."""
        if not self.ended:
            self._gm.bus.spawn(self._master.node_died(node), f"manager[{self.node}].node_died[{node}]")

    async def _restarted(self, node: int) -> None:
        await self._master.restarted(node)


async def start_manager(gm: Gm, network: Network, config: ManagerConfig | None = None) -> Manager:
    """Start the manager of the node of `gm`. Raises what `Gm.open_port` raises: its port must be free."""
    config = ManagerConfig() if config is None else config
    port = await gm.open_port(config.port)
    capacity = managed_capacity(network, gm.nic, config)
    manager = Manager(gm, port, config=config, capacity=capacity, record=take_over(gm))
    await manager.open()
    return manager


async def start_managers(
    hosts: Sequence[Gm], network: Network, config: ManagerConfig | None = None
) -> list[Manager]:
    """Start the managers of all `hosts`, the nodes of `network` in their order; they are returned in it."""
    return [await start_manager(gm, network, config) for gm in hosts]
