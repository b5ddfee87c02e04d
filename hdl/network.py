"""Networks: routers, nodes and links, checked, with their source routes and their structural Verilog.

Any graph can be described; `single_router`, `mesh` and `chain` make the usual ones.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from functools import cached_property
from typing import Self

from pydantic import Field, model_validator

from .config import ConfigError, Part, RouterConfig
from .emit import to_verilog
from .link import FlitLayout
from .packet import HEADER_LAYOUT
from .router.router import DROPPED_BITS, Router

__all__ = ["Network", "Place", "chain", "mesh", "single_router"]

Place = tuple[int, int]
"""A router's number and one of its ports."""

MAX_NODES = 1 << HEADER_LAYOUT["destination"].width
"""Nodes that the header can name."""


class Network(Part):
    """Routers of one kind, nodes at some of their ports, and links between others; every link is two-way.

    Raises ConfigError, naming the element: for a place that does not exist, a port that is used twice, a node
    that another cannot reach, a router that nothing is connected to, and for routes that could deadlock.

    Routes are shortest paths; at each router the lowest of the ports that lead nearer is taken, so they
    depend on the router and the destination alone. On a mesh that is dimension order, x first.
    """

    router: RouterConfig = Field(default_factory=RouterConfig, description="every router")
    routers: int = Field(1, ge=1, le=4096, description="routers, numbered from 0")
    nodes: tuple[Place, ...] = Field((), description="place of each node, numbered from 0")
    links: tuple[tuple[Place, Place], ...] = Field((), description="the two places that each link joins")
    node_buffer_flits: int = Field(10, ge=2, le=1024, description="receive buffer of a node, flits a VL")

    @model_validator(mode="after")
    def _check(self) -> Self:
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
            used[place] = name
        for router in range(self.routers):
            if not any(place[0] == router for place in used):
                raise ValueError(f"router {router}: no port of it is connected")
        for node in range(1, len(self.nodes)):
            if self.nodes[0][0] not in self._distances[node]:
                raise ValueError(f"node {node} cannot be reached from node 0: a link is missing")
        cycle = self._dependency_cycle()
        if cycle:
            steps = " -> ".join(f"router {router} port {port}" for router, port in [*cycle, cycle[0]])
            raise ValueError(f"routes can deadlock, each waiting for the next: {steps}")
        return self

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
    def _distances(self) -> list[dict[int, int]]:
        """For each node, the links from each router that can reach it to the node's router."""
        adjacent: dict[int, set[int]] = {router: set() for router in range(self.routers)}
        for here, there in self.neighbours.items():
            adjacent[here[0]].add(there[0])
        found: dict[int, dict[int, int]] = {}
        for root in {router for router, _ in self.nodes}:
            distance, queue = {root: 0}, deque([root])
            while queue:
                router = queue.popleft()
                for other in adjacent[router] - distance.keys():
                    distance[other] = distance[router] + 1
                    queue.append(other)
            found[root] = distance
        return [found[router] for router, _ in self.nodes]

    def next_port(self, router: int, destination: int) -> int:
        """Output port at `router` on the way to node `destination`."""
        home, port = self.nodes[destination]
        if router == home:
            return port
        distance = self._distances[destination]
        return next(
            port
            for port in range(self.router.ports)
            if (router, port) in self.neighbours
            and distance[self.neighbours[router, port][0]] < distance[router]
        )

    def path(self, source: int, destination: int) -> list[Place]:
        """Each router on the way from node `source` to node `destination`, with the port that it sends to;
        the last one is the destination's place. Raises ConfigError for a node that does not exist."""
        for node in (source, destination):
            if not 0 <= node < len(self.nodes):
                raise ConfigError(f"Network: there is no node {node}; nodes are 0 to {len(self.nodes) - 1}")
        steps, router = [], self.nodes[source][0]
        while True:
            steps.append((router, self.next_port(router, destination)))
            if steps[-1] == self.nodes[destination]:
                return steps
            router = self.neighbours[steps[-1]][0]

    def source_route(self, source: int, destination: int) -> int:
        """The header's `route` field for a packet between two nodes: the first router's output port in the
        low `hop_bits`. Raises ConfigError if it has more hops than `LinkConfig.max_hops`, or for an unknown
        node."""
        link, steps = self.router.link, self.path(source, destination)
        if len(steps) > link.max_hops:
            raise ConfigError(
                f"Network: node {source} to node {destination} is {len(steps)} routers; a route of "
                f"{link.flit_bits}-bit flits with link.hop_bits = {link.hop_bits} holds {link.max_hops}"
            )
        return sum(port << i * link.hop_bits for i, (_, port) in enumerate(steps))

    def _dependency_cycle(self) -> list[Place] | None:
        """A cycle of the channel dependency graph, whose channels are output ports (a packet keeps its VL, so
        that all VLs have the same graph), or None. A wormhole network whose graph has none cannot
        deadlock."""
        needs: dict[Place, set[Place]] = {}
        for destination in range(len(self.nodes)):
            walked: set[int] = set()
            for source in range(len(self.nodes)):
                before: Place | None = None
                router = self.nodes[source][0]
                while True:
                    channel = (router, self.next_port(router, destination))
                    if before is not None:
                        needs.setdefault(before, set()).add(channel)
                    if router in walked or channel not in self.neighbours:
                        break
                    walked.add(router)
                    before, router = channel, self.neighbours[channel][0]
        return _cycle(needs)

    @cached_property
    def credit_flits(self) -> list[tuple[int, ...]]:
        """For each router, the depth of the buffer that each of its ports sends to, flits a VL."""
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
        """The router modules that the network is made of, and their `credit_flits`: `router`, and `router_1`
        and so on where nodes sit at other ports and have buffers of another depth than routers have."""
        kinds = list(dict.fromkeys(self.credit_flits))
        return {f"router_{i}" if i else "router": depths for i, depths in enumerate(kinds)}

    def block_verilog(self) -> dict[str, str]:
        """The Verilog of each of `blocks`, made once however many routers there are."""
        return {
            name: to_verilog(Router(self.router, credit_flits=depths), name=name)
            for name, depths in self.blocks.items()
        }

    def verilog(self, name: str) -> str:
        """The network's structural top module, `name`, made of instances `router{r}` of `blocks`.

        Ports: `clk`, `rst`; for every node i, `node{i}_rx__*`, the link on which the network receives from
        the node (connect the node's `tx` to it), and `node{i}_tx__*`, the link on which it transmits to the
        node (to the node's `rx`), each with `payload`, `valid`, `credit_vl` and `credit_valid` as in
        `LinkSignature`; `dropped` (32): packets that all routers dropped; `activity`: a flit moved anywhere.
        """
        return "\n".join(self._verilog_lines(name)) + "\n"

    def _verilog_lines(self, name: str) -> Iterator[str]:
        flit, vl = FlitLayout(self.router.link).size, self.router.link.vl_bits
        forward, back = {"payload": flit, "valid": 1}, {"credit_vl": vl, "credit_valid": 1}
        names = {depths: block for block, depths in self.blocks.items()}
        node_of = {place: node for node, place in enumerate(self.nodes)}

        def declare(kind: str, signal: str, bits: int) -> str:
            return f"{kind} {f'[{bits - 1}:0] ' if bits > 1 else ''}{signal}"

        ports = ["input clk", "input rst", f"output [{DROPPED_BITS - 1}:0] dropped", "output activity"]
        for node in range(len(self.nodes)):
            for end, kinds in (("rx", ("input", "output")), ("tx", ("output", "input"))):
                for kind, members in zip(kinds, (forward, back), strict=True):
                    ports += [
                        declare(kind, f"node{node}_{end}__{member}", bits) for member, bits in members.items()
                    ]
        yield f"module {name} ("
        yield ",\n".join(f"  {port}" for port in ports)
        yield ");"
        for router in range(self.routers):
            yield f"  wire [{DROPPED_BITS - 1}:0] router{router}_dropped;"
            yield f"  wire router{router}_activity;"
            for port in range(self.router.ports):
                if (router, port) in self.neighbours:
                    # A link's wires are named after the port that sends, its credits' wires included.
                    for member, bits in (forward | back).items():
                        yield f"  {declare('wire', f'router{router}_tx{port}__{member}', bits)};"
        for router in range(self.routers):
            connected = 0
            pins = ["clk(clk)", "rst(rst)", f"dropped(router{router}_dropped)"]
            pins.append(f"activity(router{router}_activity)")
            for port in range(self.router.ports):
                place = (router, port)
                if place in node_of:
                    rx, tx = f"node{node_of[place]}_rx", f"node{node_of[place]}_tx"
                elif place in self.neighbours:
                    there = self.neighbours[place]
                    rx, tx = f"router{there[0]}_tx{there[1]}", f"router{router}_tx{port}"
                else:
                    # Nothing comes in, nothing is sent: `connected` says so.
                    pins += [f"rx__{port}__{member}({bits}'d0)" for member, bits in forward.items()]
                    pins += [f"tx__{port}__{member}({bits}'d0)" for member, bits in back.items()]
                    pins += [f"rx__{port}__{member}()" for member in back]
                    pins += [f"tx__{port}__{member}()" for member in forward]
                    continue
                connected |= 1 << port
                pins += [f"rx__{port}__{member}({rx}__{member})" for member in forward | back]
                pins += [f"tx__{port}__{member}({tx}__{member})" for member in forward | back]
            pins.append(f"connected({self.router.ports}'d{connected})")
            yield f"  {names[self.credit_flits[router]]} router{router} ("
            yield ",\n".join(f"    .{pin}" for pin in pins)
            yield "  );"
        numbers = range(self.routers)
        yield f"  assign dropped = {' + '.join(f'router{router}_dropped' for router in numbers)};"
        yield f"  assign activity = {' | '.join(f'router{router}_activity' for router in numbers)};"
        yield "endmodule"


def _cycle(needs: dict[Place, set[Place]]) -> list[Place] | None:
    """A cycle of a directed graph, or None: a depth-first search that keeps its own stack."""
    finished: set[Place] = set()
    for start in sorted(needs):
        if start in finished:
            continue
        trail, on_trail = [start], {start}
        pending = [iter(sorted(needs[start]))]
        while trail:
            following = next(pending[-1], None)
            if following is None:
                pending.pop()
                on_trail.remove(trail[-1])
                finished.add(trail.pop())
            elif following in on_trail:
                return trail[trail.index(following) :]
            elif following not in finished:
                trail.append(following)
                on_trail.add(following)
                pending.append(iter(sorted(needs.get(following, ()))))
    return None


def _enough_ports(router: RouterConfig, ports: int, what: str) -> None:
    if router.ports < ports:
        raise ConfigError(f"RouterConfig.ports = {router.ports}: {what} needs at least {ports}")


def single_router(nodes: int, *, router: RouterConfig, node_buffer_flits: int = 10) -> Network:
    """One router with node i at port i. Raises ConfigError for more nodes than ports."""
    _enough_ports(router, nodes, f"a single router with {nodes} nodes")
    places = tuple((0, port) for port in range(nodes))
    return Network(router=router, nodes=places, node_buffer_flits=node_buffer_flits)


def chain(count: int, *, router: RouterConfig, node_buffer_flits: int = 10) -> Network:
    """`count` routers in a row, a node on each: port 0 to the node, 1 to the next router, 2 to the one
    before."""
    _enough_ports(router, 3, "a chain")
    return Network(
        router=router,
        routers=count,
        nodes=tuple((i, 0) for i in range(count)),
        links=tuple(((i, 1), (i + 1, 2)) for i in range(count - 1)),
        node_buffer_flits=node_buffer_flits,
    )


def mesh(width: int, height: int, *, router: RouterConfig, node_buffer_flits: int = 10) -> Network:
    """A 2-D mesh, a node on each router; router `x + y * width`. Port 0 to the node, 1 to x + 1, 2 to x - 1,
    3 to y + 1, 4 to y - 1: x before y, so that routes are in dimension order and cannot deadlock."""
    if width < 1 or height < 1:
        raise ConfigError(f"mesh: {width} x {height} routers: at least 1 x 1")
    _enough_ports(router, 5, "a mesh")
    along_x = [((x + y * width, 1), (x + 1 + y * width, 2)) for y in range(height) for x in range(width - 1)]
    along_y = [
        ((x + y * width, 3), (x + (y + 1) * width, 4)) for y in range(height - 1) for x in range(width)
    ]
    return Network(
        router=router,
        routers=width * height,
        nodes=tuple((i, 0) for i in range(width * height)),
        links=tuple(along_x + along_y),
        node_buffer_flits=node_buffer_flits,
    )
