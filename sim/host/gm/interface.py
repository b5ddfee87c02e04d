"""GM as a host interface."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from lanikai.hdl.config import Config, NicConfig

from ...inside.deliveries import Observed
from ..bus import HostBus
from ..config import HostConfig
from ..interface import HostInterface
from .library import Gm

__all__ = ["GmInterface"]


class GmInterface(HostInterface):
    """The GM library, `Gm`, which host programs open ports of."""

    speaks = "gm"
    Costs = HostConfig

    @classmethod
    def on_node(
        cls, bus: HostBus, *, nic: NicConfig, routes: Mapping[int, int], config: Any, costs: Config | None
    ) -> Gm:
        """The library of a node, with the `GmConfig` of its firmware."""
        assert costs is None or isinstance(costs, HostConfig)
        return Gm(bus, nic=nic, nodes=routes, gm=config, host=costs)

    @classmethod
    def observed(cls, library: Gm) -> Sequence[Observed]:
        """The library: messages of which nothing has come."""
        return (library,)
