"""Admission in a simulated network of adapters: an agent at every router and every host, started."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from lanikai.hdl.config import ConfigError
from lanikai.hdl.nic.link_port.vl_port import port_config
from lanikai.hdl.router.scheduler import has_tables

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
    - `ports`, `host_ports`: the routers' ports and the nodes', for whoever reads registers.

    `start` opens each adapter's control port, before any other queue pair of it. `power`: each router's budget in
    units, None for no bound. `poll_cycles`: how often agents look for packets.

    Raises ConfigError if VL tables of routers or adapters have fewer entries than `config.table_entries`.
    """

    def __init__(
        self,
        system: AdapterNetwork,
        config: AdmissionConfig,
        *,
        power: int | None = None,
        poll_cycles: int = 100,
    ) -> None:
        self._system, network, hca = system, system.config.network, system.config.hca
        for name, router in (("routers", network.router), ("adapters", port_config(hca.port))):
            if has_tables(router) and router.vl_table_entries < config.table_entries:
                raise ConfigError(
                    f"admission: table_entries = {config.table_entries}: VL tables of the {name} have "
                    f"{router.vl_table_entries}"
                )
        numbers = range(network.routers)
        self.routers = [RouterAdmission(config, RouterPlace(network, r), power=power) for r in numbers]
        self.ports = [
            SimulatedRouterPort(system.clock, system.agent(r), network.router, poll_cycles=poll_cycles)
            for r in numbers
        ]
        self._config = config
        self.hosts: list[HostAgent] = []
        self.host_ports: list[AdapterHostPort] = []

    async def start(self, drivers: Sequence[HcaDriver]) -> None:
        """Start all agents. Returns when all tables are written for the first time."""
        clock = self._system.clock
        for router, (admission, port) in enumerate(zip(self.routers, self.ports, strict=True)):
            clock.spawn(serve_router(admission, port), f"agent of router {router}")
        for node, driver in enumerate(drivers):
            control = AdapterHostPort(clock, await AdapterControl.open(driver))
            self.host_ports.append(control)
            place = HostPlace(self._system.config.network, node)
            self.hosts.append(HostAgent(HostAdmission(self._config, place), control))
            clock.spawn(control.listen(), f"control packets of node {node}")
            clock.spawn(self.hosts[-1].serve(), f"admission of node {node}")
        while not self.settled:
            await clock.sleep(1000)

    @property
    def settled(self) -> bool:
        """Whether all agents wait, and have written everything that they had to write."""
        return all(port.settled for port in (*self.ports, *self.host_ports))

    async def registers(self) -> list[list[int]]:
        """USED_BANDWIDTH of each port of each router, and its POWER_BUDGET; only while nothing is under way."""
        found = []
        for port, admission in zip(self.ports, self.routers, strict=True):
            words = [await port.read_used(number) for number in range(admission.ledger.ports)]
            found.append([*words, await port.read_power()])
        return found
