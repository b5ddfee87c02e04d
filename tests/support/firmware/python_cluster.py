"""Nodes with firmware and GM host library on plain Python cards, for tests."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from lanikai.firmware.costs import GM_COSTS, CostTable
from lanikai.firmware.gm import GmConfig, GmProgram
from lanikai.hdl.config import NicConfig, preset
from lanikai.hdl.packet import Header
from lanikai.sim.host.gm.library import Gm

from support.firmware.python_card import Card, Delays, Host, Network
from support.firmware.scheduler import World


class Cluster:
    """A cluster of `nodes` nodes. `routes` are node numbers, as the Python network has no routers.

    `each`: changes of the GM configuration of each node, if they differ. `run(main)` runs a coroutine.
    """

    def __init__(
        self,
        nodes: int = 3,
        *,
        preset_name: str = "tiny",
        drop: Callable[[Header], bool] | None = None,
        fate: Callable[[Header], list[int]] | None = None,
        delays: Delays | None = None,
        costs: CostTable = GM_COSTS,
        nic: dict[str, Any] | None = None,
        each: Sequence[dict[str, Any]] = (),
        **gm: Any,
    ) -> None:
        self.nic = preset(NicConfig, preset_name, **(nic or {}))
        self.gm_config = GmConfig.for_nic(self.nic, **gm)
        self.world = World()
        self.network = Network(self.world, drop, fate)
        self.cards = [Card(self.network, node, self.nic, delays) for node in range(nodes)]
        routes = {node: node for node in range(nodes)}
        configs = [self.gm_config.replace(**changes) for changes in each or [{}] * nodes]
        self.programs: list[GmProgram] = [
            GmProgram(card, node=card.node, nic=self.nic, routes=routes, config=config, costs=costs)
            for card, config in zip(self.cards, configs, strict=True)
        ]
        for program in self.programs:
            program.start()
        self.hosts = [Host(card) for card in self.cards]
        self.gms = [
            Gm(host, nic=self.nic, nodes=routes, gm=config)
            for host, config in zip(self.hosts, configs, strict=True)
        ]

    def restart(self, node: int) -> None:
        """Put a new card and host in a node's place, which know nothing of before."""
        card = Card(self.network, node, self.nic, self.cards[node].delays)
        routes, incarnation = self.programs[node].routes, self.programs[node].incarnation + 1
        gm = self.programs[node].gm
        self.programs[node] = GmProgram(
            card, node=node, nic=self.nic, routes=routes, config=gm, incarnation=incarnation
        )
        self.programs[node].start()
        self.cards[node], self.hosts[node] = card, Host(card)
        self.gms[node] = Gm(self.hosts[node], nic=self.nic, nodes=routes, gm=gm)

    def run(self, main: Any, limit: int = 50_000_000) -> Any:
        return self.world.run(main, limit)

    async def settle(self) -> None:
        """Let everything under way come to its end: longer than two resend periods."""
        ticks = 3 * self.gm_config.resend_ticks
        await self.world.sleep(int(ticks * self.nic.tick_cycles))

    def assert_home(self) -> None:
        """Check that nothing is left behind in the cards: buffers, tokens, packets, doorbells."""
        for card, program in zip(self.cards, self.programs, strict=True):
            layout = program.layout
            assert sorted(program.sdma.free_buffers) == layout.transmit_buffers
            held = [*program.recv.free_buffers, program.recv.armed]
            assert sorted(held) == layout.receive_buffers
            assert not any(card.busy.values()) and not card.inbox and not card.queue and not card.words
            assert len(program.queue) == 0
            for flow in program.flows.values():
                assert not flow.sendable and not flow.awaiting and not flow.valid
                assert flow.paused_until_ticks is None
            assert not any(flow.valid for flow in card.flows)
            for connection in program.connections.values():
                assert connection.tokens == 0
                for stream in connection.send.values():
                    assert not stream.unacknowledged and not stream.resend and stream.under_way == 0
            for port in program.ports:
                assert not port.assemblies
        for gm in self.gms:
            for port in gm._ports.values():
                assert port.send_tokens == self.gm_config.send_tokens
