"""Networks: routers, nodes and links, checked, with their source routes and their structural Verilog.

Any graph can be described; `single_router`, `mesh`, `torus`, `chain` and `tree` make the usual ones.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any, Self

from pydantic import Field, model_validator

from .config import Config, ConfigError, RouterConfig
from .network_auto import GIVEN, fits_source_routes, in_topology, up_down, why_by_destination, with_routing
from .network_checks import Channel, dependency_cycle, next_channel
from .network_paths import NO_WAY, Paths
from .network_waits import waiting_cycle
from .packet import HEADER_LAYOUT
from .router.routing import AUTO, Place, routing_class

if TYPE_CHECKING:
    from .fault_link import FaultPlace
    from .router.router import Router

__all__ = ["MAX_NODES", "Network", "Place", "chain", "mesh", "single_router", "torus", "tree"]

MAX_NODES = 1 << HEADER_LAYOUT["destination"].width
"""Nodes that the header can name."""


class Network(Config):
    """Routers of one kind, nodes at some of their ports, and links between others; every link is two-way.

    Raises ConfigError, naming the element, for each of these:

    - a place that does not exist
    - a port that is used twice
    - a node that another cannot reach
    - a router that nothing is connected to
    - a table that leads off the network
    - routes that could deadlock

    With the routing `auto`, a mesh or torus (`coordinates`) whose source routes do not fit is routed by
    `dimension_order` or `torus`, and any other network by `table`. Where source routes fit, it is `source`. `router`
    then names that. Where shortest paths could deadlock, `auto` makes `tables` of up*/down* routing for both. A network
    with a `topology` is routed by that topology's function, unless routers cannot have it.

    Routes depend on the router and the destination alone. With dimension order they are the routers' own; else they
    are those of `tables`. Without tables they are shortest paths: each router takes the lowest of the ports that lead
    nearer. On a mesh that is dimension order, x first.
    """

    router: RouterConfig = Field(default_factory=RouterConfig, description="every router")
    routers: int = Field(1, ge=1, le=4096, description="routers, numbered from 0")
    nodes: tuple[Place, ...] = Field((), description="place of each node, numbered from 0")
    links: tuple[tuple[Place, Place], ...] = Field((), description="the two places that each link joins")
    node_buffer_flits: int = Field(10, ge=2, le=1024, description="receive buffer of a node, flits a VL")
    coordinates: tuple[tuple[int, int], ...] = Field(
        (), description="x and y of each router, for `dimension_order` routing"
    )
    topology: str = Field(
        "",
        description="its name if `lanikai.hdl.topologies` has it, `ring(8)`, for the function that routes it",
    )
    tables: tuple[tuple[int, ...], ...] = Field(
        (), description="for each router its port for each node, -1 for none (empty: shortest paths)"
    )

    @model_validator(mode="after")
    def _check(self) -> Self:
        if "_checked" in self.__dict__:
            return self  # a network that becomes part of a configuration comes here again
        if not 1 <= len(self.nodes) <= MAX_NODES:
            raise ValueError(f"{len(self.nodes)} nodes: 1 to {MAX_NODES}")
        used: dict[Place, str] = {}
        for name, place in self._named_places():
            router, port = place
            if not 0 <= router < self.routers:
                raise ValueError(f"{name}: there is no router {router}; routers are 0 to {self.routers - 1}")
            if not 0 <= port < self.router.ports:
                raise ValueError(
                    f"{name}: router {router} has no port {port}; ports are 0 to {self.router.ports - 1}"
                )
            if place in used:
                raise ValueError(f"{name}: port {port} of router {router} is taken by {used[place]}")
            if port == 0 and self.router.management:
                raise ValueError(f"{name}: port 0 of router {router} is its management port")
            used[place] = name
        for router in sorted(set(range(self.routers)) - {router for router, _ in used}):
            raise ValueError(f"router {router}: no port of it is connected")
        for node, distance in enumerate(self._paths.distances[self.nodes[0][0]]):
            if distance == NO_WAY:
                raise ValueError(f"node {node} cannot be reached from node 0: a link is missing")
        if self.router.routing == AUTO:
            object.__setattr__(self, "router", with_routing(self))
            if self.router.routing in GIVEN and not self.tables and dependency_cycle(self):
                object.__setattr__(self, "tables", up_down(self))
                del self.__dict__["_paths"]
                object.__setattr__(self, "router", with_routing(self))
        object.__setattr__(self, "router", in_topology(self))
        function = routing_class(self.router)
        function.check_config(self.router)
        function.check(self)
        cycle = waiting_cycle(self)
        if cycle:
            raise ValueError(f"routes can deadlock, each waiting for the next: {cycle}")
        self.__dict__["_checked"] = True
        return self

    @property
    def longest_path(self) -> int:
        """Routers on the longest way from node to node by `tables`, or else by shortest paths."""
        return self._paths.longest

    @cached_property
    def by_destination(self) -> str:
        """One line: routers choose the way by the destination, or go up*/down*, and why. Else it is empty."""
        return why_by_destination(self)

    def _named_places(self) -> Iterator[tuple[str, Place]]:
        for number, place in enumerate(self.nodes):
            yield f"node {number}", place
        for number, link in enumerate(self.links):
            for place in link:
                yield f"link {number}", place

    @cached_property
    def neighbours(self) -> dict[Place, Place]:
        """The place at the other end of each link's place."""
        pairs = {a: b for a, b in self.links}
        return pairs | {b: a for a, b in self.links}

    @cached_property
    def _paths(self) -> Paths:
        return Paths(self.neighbours, self.routers, self.router.ports, self.nodes, self.tables)

    @property
    def given_ports(self) -> Any:
        """`given_port` of each router for each node: an array of routers x nodes."""
        return self._paths.given_ports

    @cached_property
    def last(self) -> tuple[int, int]:
        """Largest x and y of `coordinates`."""
        return max(x for x, _ in self.coordinates), max(y for _, y in self.coordinates)

    def given_port(self, router: int, destination: int) -> int:
        """Output port at `router` on the way to node `destination`, -1 for none.

        It is the port of `tables`, or of a shortest path if there are none. `path_from` gives the path that routing
        functions make of it.
        """
        return int(self.given_ports[router, destination])

    def path(self, source: int, destination: int, *, vl: int = 0) -> list[Place]:
        """Each router on the way from node `source` to node `destination`, with the port that it sends to.

        The last one is the destination's place. `vl`: VL that the node sends on, if the routing function goes by it.
        Raises ConfigError for a node that does not exist.
        """
        self._check_node(source)
        router, port = self.nodes[source]
        return self.path_from(router, destination, in_port=port, vl=vl)

    def path_from(
        self, router: int, destination: int, *, in_port: int | None = None, vl: int = 0
    ) -> list[Place]:
        """The path of a packet that enters at `in_port` of a router; None stands for the port of its agent.

        Raises ConfigError for a router that has no way to the node.
        """
        return [(at, port) for at, port, _ in self.channels(router, destination, in_port=in_port, vl=vl)]

    def channels(
        self, router: int, destination: int, *, in_port: int | None = None, vl: int = 0
    ) -> list[Channel]:
        """The path of `path_from`, with the VL that the packet is sent on at each step."""
        self._check_node(destination)
        steps: list[Channel] = []
        in_port = 0 if in_port is None else in_port
        while True:
            channel = next_channel(self, router, in_port, vl, destination)
            if channel is None:
                raise ConfigError(f"Network: router {router} has no port for node {destination}")
            steps.append(channel)
            if channel[:2] == self.nodes[destination]:
                return steps
            router, in_port = self.neighbours[channel[:2]]
            vl = channel[2]

    def _check_node(self, node: int) -> None:
        if not 0 <= node < len(self.nodes):
            raise ConfigError(f"Network: there is no node {node}; nodes are 0 to {len(self.nodes) - 1}")

    def source_route(self, source: int, destination: int) -> int:
        """The header's `route` field for a packet between two nodes.

        With source routes it has the first router's output port in the low `hop_bits`, the second one's above, and so
        on. Otherwise it has what the routing function looks at: the destination's number or coordinates.

        Raises ConfigError if there are more hops than `LinkConfig.max_hops`, or for an unknown node.
        """
        self._check_node(source)
        self._check_node(destination)
        router, port = self.nodes[source]
        return routing_class(self.router).route_field(self, router, port, destination)

    def check_routes(self) -> None:
        """Raises ConfigError, naming two nodes, if a header does not hold the route from one to the other."""
        if not routing_class(self.router).strips or fits_source_routes(self):
            return
        for source in range(len(self.nodes)):
            for destination in range(len(self.nodes)):
                self.source_route(source, destination)

    def route_from(self, router: int, destination: int) -> int:
        """The header's `route` field for a packet that the agent of `router` sends, as `source_route`."""
        self._check_node(destination)
        return routing_class(self.router).route_field(self, router, 0, destination)

    def forwarding_table(self, router: int) -> list[int]:
        """The port for each node at `router`, -1 for none, as its forwarding table must be given it at run time."""
        return [int(port) for port in self.given_ports[router]]

    @cached_property
    def credit_flits(self) -> list[tuple[int, ...]]:
        """The depth of the buffer to which each port of each router sends, flits a VL."""
        nodes = set(self.nodes)
        return [
            tuple(
                self.node_buffer_flits if (router, port) in nodes else self.router.input_buffer_flits
                for port in range(self.router.ports)
            )
            for router in range(self.routers)
        ]

    @cached_property
    def blocks(self) -> dict[str, tuple[int, ...]]:
        """The router modules that the network is made of, by name, and their `credit_flits`.

        The first is `router`. `router_1` and so on follow where nodes sit at other ports and have buffers of another
        depth than routers have.
        """
        kinds = list(dict.fromkeys(self.credit_flits))
        return {f"router_{i}" if i else "router": depths for i, depths in enumerate(kinds)}

    def block_verilog(self, *, watch: bool = False) -> dict[str, str]:
        """The Verilog of each of `blocks`, made once however many routers there are. `watch`: with monitors."""
        # Here, not above, as in `verilog`: who only wants to know routes waits for neither.
        from .emit import to_verilog

        blocks = self.block_components(watch=watch)
        return {name: to_verilog(router, name=name) for name, router in blocks.items()}

    def block_components(self, *, skippable: bool = False, watch: bool = False) -> dict[str, Router]:
        """The router of each of `blocks`. `skippable` is that of `Router`; `watch`: with monitors."""
        from .router.router import Router

        found = {
            name: Router(self.router, credit_flits=depths, skippable=skippable)
            for name, depths in self.blocks.items()
        }
        if watch:
            from .monitors.debug import watched_router

            return {name: watched_router(router) for name, router in found.items()}
        return found

    def connected(self, router: int) -> int:
        """The ports of `router` that lead somewhere, as its input of that name."""
        return self._connected[router]

    @cached_property
    def _connected(self) -> list[int]:
        found = [0] * self.routers
        for router, port in [*self.neighbours, *self.nodes]:
            found[router] |= 1 << port
        return found

    def position(self, router: int) -> int:
        """The router's position as a number, if the routing function has a `position_layout`."""
        function = routing_class(self.router)
        layout = function.position_layout
        values = function.position_of(self, router)
        return sum(value << layout[name].offset for name, value in values.items()) if layout else 0

    def verilog(self, name: str, *, faults: Sequence[FaultPlace] = ()) -> str:
        """The network's structural top module, `name`, made of instances `router{r}` of `blocks`.

        Ports:

        - `clk`, `rst`: clock and reset.
        - `node{i}_rx__*`, for every node i: the link on which the network receives from the node. The node's `tx` is
          connected to it.
        - `node{i}_tx__*`, for every node i: the link on which the network transmits to the node. The node's `rx` is
          connected to it.
        - `dropped` (32): packets that all routers dropped.
        - `activity`: a flit moved anywhere.
        - `router{r}_agent__request` and `router{r}_agent__response`, for every router r with an agent (`has_agent`):
          the port of its agent (`PROCESSOR_REQUEST`, `PROCESSOR_RESPONSE`).

        Each link has `payload`, `valid`, `credit_vl` and `credit_valid` as in `LinkSignature`. With
        `LinkConfig.restart` it has `restart` and `credit_restart` too. `faults`: links that fail (`NetworkComponent`).
        """
        from .emit import to_verilog
        from .network_component import NetworkComponent

        return to_verilog(NetworkComponent(self, faults=faults), name=name)


def _enough_ports(router: RouterConfig, ports: int, what: str) -> None:
    if router.ports < ports:
        raise ConfigError(f"RouterConfig.ports = {router.ports}: {what} needs at least {ports}")


def _first_port(router: RouterConfig) -> int:
    """The first port that is not for management."""
    return 1 if router.management else 0


def single_router(nodes: int, *, router: RouterConfig, node_buffer_flits: int = 10) -> Network:
    """One router with node i at port i, or with management at port i + 1.

    Raises ConfigError for more nodes than ports.
    """
    base = _first_port(router)
    _enough_ports(router, base + nodes, f"a single router with {nodes} nodes")
    places = tuple((0, base + port) for port in range(nodes))
    return Network(router=router, nodes=places, node_buffer_flits=node_buffer_flits)


def chain(
    count: int, *, router: RouterConfig, node_buffer_flits: int = 10, nodes: Sequence[int] = ()
) -> Network:
    """`count` routers in a row, with `nodes` on each of them (by default one).

    Ports from 0 on lead to the nodes, the port after them to the next router, and one more to the router before. With
    management each port is one higher. Nodes are numbered router by router.

    Raises ConfigError if `nodes` are not `count` numbers, or for too few ports.
    """
    nodes = nodes or [1] * count
    if len(nodes) != count:
        raise ConfigError(f"chain: nodes = {list(nodes)}: a number of nodes for each of {count} routers")
    base, most = _first_port(router), max(nodes)
    following = base + most
    _enough_ports(router, following + 2, "a chain" if most == 1 else f"a chain with {most} nodes on a router")
    return Network(
        router=router,
        routers=count,
        nodes=tuple((i, base + port) for i, number in enumerate(nodes) for port in range(number)),
        links=tuple(((i, following), (i + 1, following + 1)) for i in range(count - 1)),
        node_buffer_flits=node_buffer_flits,
    )


def tree(fan_out: int, levels: int, *, router: RouterConfig, node_buffer_flits: int = 10) -> Network:
    """A tree of `levels` levels of routers with `fan_out` children each.

    Each router of the last level has `fan_out` nodes. Ports 0 to `fan_out - 1` lead down, port `fan_out` up; with
    management each is one higher. Routers are numbered from the root, level by level.
    """
    if fan_out < 1 or levels < 1:
        raise ConfigError(f"tree: fan_out = {fan_out}, levels = {levels}: at least 1 each")
    base = _first_port(router)
    _enough_ports(router, base + fan_out + (levels > 1), "a tree")
    starts = [sum(fan_out**i for i in range(level)) for level in range(levels + 1)]
    links = [
        (
            (parent, base + child),
            (starts[level + 1] + (parent - starts[level]) * fan_out + child, base + fan_out),
        )
        for level in range(levels - 1)
        for parent in range(starts[level], starts[level + 1])
        for child in range(fan_out)
    ]
    leaves = range(starts[levels - 1], starts[levels])
    return Network(
        router=router,
        routers=starts[levels],
        nodes=tuple((leaf, base + child) for leaf in leaves for child in range(fan_out)),
        links=tuple(links),
        node_buffer_flits=node_buffer_flits,
    )


def mesh(width: int, height: int, *, router: RouterConfig, node_buffer_flits: int = 10) -> Network:
    """A 2-D mesh, a node on each router; the router at (x, y) has number `x + y * width`.

    Port 0 leads to the node, 1 to x + 1, 2 to x - 1, 3 to y + 1, 4 to y - 1. With management each port is one higher.
    Ports of x come before those of y, so that routes are in dimension order and cannot deadlock.
    """
    return _grid("mesh", width, height, router, node_buffer_flits)


def torus(width: int, height: int, *, router: RouterConfig, node_buffer_flits: int = 10) -> Network:
    """A 2-D torus: the `mesh` with the last router of each row and column linked to the first one.

    Only `torus` routing, which is what `auto` means there, keeps packets from waiting for each other round a ring of
    more than 3 routers.
    """
    return _grid("torus", width, height, router, node_buffer_flits)


def _grid(kind: str, width: int, height: int, router: RouterConfig, node_buffer_flits: int) -> Network:
    if width < 1 or height < 1:
        raise ConfigError(f"{kind}: {width} x {height} routers: at least 1 x 1")
    base = _first_port(router)
    _enough_ports(router, base + 5, f"a {kind}")
    columns, rows = range(width), range(height)
    wraps = kind == "torus"
    along_x = [
        ((x + y * width, base + 1), ((x + 1) % width + y * width, base + 2))
        for y in rows
        for x in (columns if wraps and width > 1 else columns[:-1])
    ]
    along_y = [
        ((x + y * width, base + 3), (x + (y + 1) % height * width, base + 4))
        for y in (rows if wraps and height > 1 else rows[:-1])
        for x in columns
    ]
    return Network(
        router=router,
        routers=width * height,
        nodes=tuple((i, base) for i in range(width * height)),
        links=tuple(along_x + along_y),
        node_buffer_flits=node_buffer_flits,
        coordinates=tuple((x, y) for y in rows for x in columns),
    )
