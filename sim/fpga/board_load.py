"""The experiment network-load on a board: the same points, seeds and results, measured by the design there."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..errors import UserError
from ..experiments.framework.base import Claim, Outcome, Point
from ..experiments.framework.parameters import parse
from ..experiments.network_load import NetworkLoad, NetworkLoadParameters
from ..systems.traffic_config import TrafficNetworkConfig
from .loopback import LoopbackSize
from .size import BoardExperiment

__all__ = ["SETTINGS", "BoardLoad", "different"]

SETTINGS = (
    *("loads", "pattern", "packet_flits", "hot_node", "hot_fraction", "destinations"),
    *("process", "on_cycles", "off_cycles"),
)
"""Parameters of network-load that a host may set. All others are the design's."""


class BoardLoad(NetworkLoad, BoardExperiment):
    """network-load on the design of `size`, whatever runs it: the board, or a simulator of the same network."""

    host_sets = SETTINGS

    def __init__(self, size: LoopbackSize) -> None:
        self.size = size

    def parameters(self, settings: Sequence[str]) -> NetworkLoadParameters:
        """The parameters with `settings`, `key=value` each. Raises UserError, ConfigError for what the design cannot
        do."""
        for setting in settings:
            key = setting.partition("=")[0].strip()
            if key in NetworkLoadParameters.model_fields and key not in SETTINGS:
                raise UserError(f"--set {setting!r}: the design decides it; valid: {', '.join(SETTINGS)}")
        given: Any = parse(self, settings)
        found = self.size.parameters(**{name: getattr(given, name) for name in given.model_fields_set})
        self._check(found)
        return found

    def _check(self, found: NetworkLoadParameters) -> None:
        size = self.size
        if found.packet_flits > size.max_packet_flits:
            raise UserError(
                f"packet_flits = {found.packet_flits}: the design has at most {size.max_packet_flits}"
            )
        if not size.random and found.process != "periodic":
            raise UserError(f"process = {found.process!r}: the design has no random numbers; only 'periodic'")
        if not size.random and found.pattern == "hot_spot":
            raise UserError(f"pattern = {found.pattern!r}: the design has no random numbers")
        if size.one_way:
            system = size.system(found)
            for setup in found.classes(found.duty):
                sending = [n for n in range(size.ports) if setup.destination(n, system.traffic) != n]
                if sending != [0]:
                    raise UserError(
                        f"pattern = {found.pattern!r}: nodes {sending} would send, and in the design node 0 alone can: "
                        "'table', with the destinations of the others themselves"
                    )

    def claims(self, parameters: NetworkLoadParameters, outcomes: Sequence[Outcome]) -> list[Claim]:
        """Those of network-load that a design of one allocator can be judged by."""
        return [claim for claim in super().claims(parameters, outcomes) if claim.holds is not None]

    def system(self, parameters: NetworkLoadParameters, point: Point) -> TrafficNetworkConfig:
        """The network of the design."""
        return self.size.system(parameters)


def different(board: Sequence[Outcome], simulated: Sequence[Outcome]) -> list[str]:
    """The results that are not the same on the board as in a simulation, a line each: point, result, both values."""
    return [
        f"{mine.point.label}: {name} is {mine.results[name]} on the board, {other.results[name]} in simulation"
        for mine, other in zip(board, simulated, strict=True)
        for name in mine.results
        if mine.results[name] != other.results[name]
    ]
