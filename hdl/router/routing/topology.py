"""A network as its routing function and its checks see it."""

from __future__ import annotations

from typing import Any, Protocol

from ...config import RouterConfig

__all__ = ["Place", "Topology"]

Place = tuple[int, int]
"""A router's number and one of its ports."""


class Topology(Protocol):
    """A network as `RoutingFunction` may see it; `lanikai.hdl.network.Network` is one. Its fields:

    - `router`: configuration of every router.
    - `routers`: number of routers, which are numbered from 0.
    - `nodes`: place of each node.
    - `links`: the two places that each link joins.
    - `neighbours`: for each place of a link, the place at its other end.
    - `topology`: its name if it is one of `lanikai.hdl.topologies`, such as `ring(8)`; else empty.
    - `coordinates`: x and y of each router; empty if the network has none.
    - `last`: the largest x and y.
    - `given_ports`: `given_port` of all routers (rows) and nodes, an array.
    - `tables`: for each router its port for each node, -1 for none; empty if the user gave none.
    """

    @property
    def router(self) -> RouterConfig: ...
    @property
    def routers(self) -> int: ...
    @property
    def nodes(self) -> tuple[Place, ...]: ...
    @property
    def links(self) -> tuple[tuple[Place, Place], ...]: ...
    @property
    def neighbours(self) -> dict[Place, Place]: ...
    @property
    def topology(self) -> str: ...
    @property
    def coordinates(self) -> tuple[tuple[int, int], ...]: ...
    @property
    def last(self) -> tuple[int, int]: ...
    @property
    def tables(self) -> tuple[tuple[int, ...], ...]: ...
    @property
    def given_ports(self) -> Any: ...

    def given_port(self, router: int, destination: int) -> int:
        """The port that `tables` have at `router` for node `destination`, -1 for none.

        Without tables it is the port of a shortest path.
        """
        ...

    def path_from(
        self, router: int, destination: int, *, in_port: int | None = None, vl: int = 0
    ) -> list[Place]:
        """The places that a packet is sent to from `router` on; the last one is that of its node."""
        ...
