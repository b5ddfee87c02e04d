"""Configuration of an adapter network: every message is posted and received by a coroutine through an adapter."""

from __future__ import annotations

from typing import TYPE_CHECKING, Self

from lanikai.hdl.config import ConfigError, HcaConfig, preset
from lanikai.hdl.hca.injection.control import injection_class
from lanikai.hdl.network import Network
from lanikai.hdl.network_waits import require_order
from pydantic import Field, model_validator

from ...inside.watchdog import WATCHDOG_BITS
from ...models.system_bus import SystemBusTiming
from ..base import SystemConfig
from .side_bands import side_band

if TYPE_CHECKING:
    from ..build.model import Design, Variant

__all__ = ["AdapterNetworkConfig"]


class AdapterNetworkConfig(SystemConfig):
    """The network, the adapters at its places, and their hosts' buses and memories."""

    title = "adapter network"
    inside = "lanikai.sim.systems.adapters.network:AdapterNetwork"
    # The watchdog's limit is an input of the design; the rings are memory of the hosts.
    not_in_design = frozenset({"watchdog_cycles", "ring_slots"})

    network: Network = Field(default_factory=Network, description="routers, links, places of the nodes")
    hca: HcaConfig = Field(
        default_factory=lambda: preset(HcaConfig, "yum2006"), description="every node's adapter"
    )
    bus: SystemBusTiming = Field(default_factory=SystemBusTiming, description="every host's bus")
    memory_bytes: int = Field(
        1 << 22, ge=4096, le=1 << 31, multiple_of=4096, description="memory of every host, bytes"
    )
    ring_slots: int = Field(
        4096, ge=2, le=1 << 20, description="writes into its adapter's window that a host may have ahead"
    )
    tally: bool = Field(
        False, description="count what passes every link and bus a second time, from their wires alone"
    )
    watchdog_cycles: int = Field(
        100_000,
        ge=0,
        lt=1 << WATCHDOG_BITS,
        description="cycles without any movement after which the simulation is ended, if messages are under way; "
        "0: never",
    )

    @model_validator(mode="after")
    def _check(self) -> Self:
        if self.network.router.link != self.hca.link:
            raise ValueError(
                "network.router.link and hca.link differ: both ends of a link are configured alike"
            )
        require_order(self.network.router, "network.router", "queue pairs")
        wanted = self.hca.port.input_buffer_flits
        if self.network.node_buffer_flits != wanted:
            raise ValueError(
                f"network.node_buffer_flits = {self.network.node_buffer_flits}: must be {wanted}, the adapter's buffer "
                "of each VL (receive_packets x packet_flits)"
            )
        if self.hca.destinations < len(self.network.nodes):
            raise ValueError(
                f"hca.destinations = {self.hca.destinations}: at least {len(self.network.nodes)}, the network's nodes"
            )
        try:
            side_band(self.network, self.hca)
        except ConfigError as error:
            raise ValueError(str(error)) from None
        if injection_class(self.hca).side_name and not self.network.router.status_outputs:
            raise ValueError(
                f"hca.injection = {self.hca.injection!r}: needs network.router.status_outputs = True, which tell it of "
                "the network"
            )
        return self

    @classmethod
    def on(cls, network: Network, hca: HcaConfig, **others: object) -> Self:
        """Adapters `hca`, with the network's link and a row of their tables for each node, on `network`.

        Its routers get credits for the adapters' buffers, and status outputs if injection control needs them. Raises
        ConfigError.
        """
        nodes = len(network.nodes)
        hca = hca.replace(link=network.router.link, destinations=max(hca.destinations, nodes))
        router = network.router.replace(status_outputs=injection_class(hca).side_name is not None)
        network = network.replace(router=router, node_buffer_flits=hca.port.input_buffer_flits)
        return cls(network=network, hca=hca, **others)

    def design(self, variant: Variant = "fast") -> Design:
        """The design. One for debugging has monitors."""
        from .verilog import adapter_design

        return adapter_design(
            self.network,
            self.hca,
            timing=self.bus,
            memory_bytes=self.memory_bytes,
            watch=variant == "debug",
            tally=self.tally,
        )
