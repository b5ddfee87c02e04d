"""Admission in a simulated network of adapters: an agent at every router and every host, started."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from ..host.hca.control import ControlPort as AdapterControl
from .agent import HostAgent, serve_router
from .config import AdmissionConfig
from .host import HostAdmission
from .places import HostPlace, RouterPlace
from .router import RouterAdmission
from .rtl import AdapterHostPort, SimulatedRouterPort

if TYPE_CHECKING:
    from ..host.hca.driver import HcaDriver
    from ..systems.adapters.network import AdapterNetwork

__all__ = ["AdmittedNetwork"]


class AdmittedNetwork:
    """The agents of an adapter network whose routers have a management port.

    - `hosts`: a `HostAgent` a node. `routers`: a `RouterAdmission` a router.
    - `ports`: the routers' ports, for whoever reads registers.

    `start` opens each adapter's control port, before any other queue pair of it. `power`: each router's budget in
    units, None for no bound. `poll_cycles`: how often agents look for packets.
    """

    def __init__(
        self,
        system: AdapterNetwork,
        config: AdmissionConfig,
        *,
        power: int | None = None,
        poll_cycles: int = 100,
    ) -> None:
        self._system, network = system, system.config.network
        numbers = range(network.routers)
        self.routers = [RouterAdmission(config, RouterPlace(network, r), power=power) for r in numbers]
        self.ports = [
            SimulatedRouterPort(system.clock, system.agent(r), network.router, poll_cycles=poll_cycles)
            for r in numbers
        ]
        self._config = config
        self.hosts: list[HostAgent] = []

    async def start(self, drivers: Sequence[HcaDriver]) -> None:
        """Start all agents. Returns when the routers' tables are written for the first time."""
        clock = self._system.clock
        for router, (admission, port) in enumerate(zip(self.routers, self.ports, strict=True)):
            clock.spawn(serve_router(admission, port), f"agent of router {router}")
        for node, driver in enumerate(drivers):
            control = AdapterHostPort(clock, await AdapterControl.open(driver))
            place = HostPlace(self._system.config.network, node)
            self.hosts.append(HostAgent(HostAdmission(self._config, place), control))
            clock.spawn(control.listen(), f"control packets of node {node}")
            clock.spawn(self.hosts[-1].serve(), f"admission of node {node}")
        while not all(port.settled for port in self.ports):
            await clock.sleep(1000)

    async def registers(self) -> list[list[int]]:
        """USED_BANDWIDTH of each port of each router, and its POWER_BUDGET; only while nothing is under way."""
        found = []
        for port, admission in zip(self.ports, self.routers, strict=True):
            words = [await port.read_used(number) for number in range(admission.ledger.ports)]
            found.append([*words, await port.read_power()])
        return found
