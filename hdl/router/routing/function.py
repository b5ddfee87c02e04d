"""The base of routing functions: one class has the hardware, its twin in Python, and what it needs of a network."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from amaranth import Module
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out

from ...config import ROUTE_BITS, WORD_ROUTE_BITS, ConfigError, RouterConfig
from ...packet import HEADER_LAYOUT
from .topology import Topology

__all__ = [
    "LOAD_BITS",
    "NODE_BITS",
    "RANDOM_BITS",
    "Arrival",
    "RoutingFunction",
    "TableWriteSignature",
    "Ways",
]

NODE_BITS = HEADER_LAYOUT["destination"].width
"""Width of a node's number: the low bits of the route where it names the destination."""
LOAD_BITS = 8
"""Width of a port's load as routing sees it, flits (`PortLoads`)."""
RANDOM_BITS = 24
"""Width of the random number of each packet where it enters, for functions that choose by it."""


class TableWriteSignature(wiring.Signature):
    """The port where forwarding tables are written, seen by the function. Members:

    - `write` (in): a row is written, and acts from the next cycle on.
    - `node` (in): the node that the row is for. Rows beyond the table are ignored.
    - `port` (in): the port by which the node is reached.
    - `known` (in): low if the node is reached by none.
    """

    def __init__(self, config: RouterConfig) -> None:
        port_bits = max(1, (config.ports - 1).bit_length())
        super().__init__({"write": In(1), "node": In(NODE_BITS), "port": In(port_bits), "known": In(1)})


class Arrival(NamedTuple):
    """A header as a routing function sees it: the inputs of the hardware as plain numbers.

    - `in_port`: input port. `vl`: virtual lane it came on.
    - `route`: low `RoutingFunction.route_bits` of the header's route field.
    - `position`: fields of the router's position, {} if the function has none.
    - `rows`: the forwarding table, a port for each node, -1 for none; () if the function has none.
    - `random`: `RANDOM_BITS` random bits, and `loads`: the load of each port, where a packet enters.
    """

    in_port: int
    vl: int
    route: int
    position: Mapping[str, int] = {}
    rows: Sequence[int] = ()
    random: int = 0
    loads: Sequence[int] = ()


class Ways(NamedTuple):
    """All that a packet may do at a router: (port, VL, goal there) each.

    - `escapes`: of each packet that the state stands for, the pair that it may always wait for.
    - `options`: pairs that it may take besides.
    """

    escapes: tuple[tuple[int, int, int], ...]
    options: tuple[tuple[int, int, int], ...]


class RoutingFunction(wiring.Component):
    """Base of the routing functions.

    One class is all that there is to a function: hardware (`elaborate`), twin (`decide`), header (`route_field`), needs
    (`check_config`, `check`). Whoever wants to know a way asks the class.

    Parameters:

    - `config`: the router's configuration.
    - `in_port`: number of the input port that the instance serves: a constant, which takes no logic.

    Members (P ports):

    - `route` (in, `route_bits(config)`): low bits of the header's route field.
    - `port` (out, P): the output port, one-hot. With 0 there is none, and the packet is dropped whole.
    - `vl` (in, `vl_bits`), only with `sees_vl` or `changes_vl`: VL that the packet came on.
    - `out_vl` (out, `vl_bits`), only with `changes_vl`: VL that the packet leaves on. A packet is dropped if that VL
      does not exist or is the control VL. Packets on the control VL keep it, whatever `out_vl` says.
    - `position` (in, `position_layout`), only with a layout: constants of the router, so that one block serves every
      router of a network.
    - `table` (in, `TableWriteSignature`), only with `uses_table`: writes of the forwarding table.

    Latency: none, outputs follow inputs in the same cycle (stage 2 has a register behind them). Throughput: a header a
    cycle. Reset: no state but a table's rows, which stay.

    Attributes that a derived class sets:

    - `strips`: the route holds the hops one after the other, and a router takes off the one that it has used.
    - `by_source`: the route field depends on the router where a packet enters, too; with `strips` it always does.
    - `sees_vl`: the port depends on the VL; packets keep theirs.
    - `changes_vl`: the function chooses the VL, too (`RouterConfig.vl_selection` must be `routing`).
    - `position_layout`, `uses_table`: as above.
    - `by_place`: the way from a router on depends on the destination alone, and not on the port or VL that a packet
      came by. Packets to a set of nodes need it (`RouterConfig.multicast_nodes`).
    - `in_order`: packets from node to node on one VL arrive in the order in which they were sent. Whoever needs that
      asks `hdl.network.in_order`.
    - `adaptive`, `options_empty`: see below.

    A derived class gives `elaborate` and `decide`, which must agree: `tests/hdl/router/test_routing_twin.py` holds
    every registered function to it. Its docstring gives the contents of the route, and the reason why packets cannot
    deadlock or the place where that is checked. Nothing need be proved for that: `Network` follows all packets by
    `next_port`, and refuses a cycle of (port, VL) channels.

    **Adaptive functions** (`adaptive`) admit several (port, VL) pairs. They have these members besides:

    - `options` (out, P): ports that the packet may take as well as `port`, on VL `option_vl`.
    - `option_vl` (out, `vl_bits`): that VL. `port` and `out_vl` are the packet's *escape*, which may be among them.

    How one of the pairs is chosen (`VlSelectionStage`, `hdl/router/adaptive/`):

    - Where: in stage 3, and not in this class, which gives the same set for the same header. Stage 2 keeps the set
      in the route register of the packet.
    - What it sees: registers of this router alone. An output VL that no packet owns is free. Of the free options the
      one is asked for whose port has the fewest flits on their way (`PortLoads`). Without one it is the escape.
    - What a header costs: the same five cycles as of any other function.
    - What happens when the output is taken: the choice is made anew in each cycle until an output VL is given. So a
      packet that waits can always take its escape. One that was outrun 8 times at free outputs keeps to the escape.
    - `options_empty`: an option is taken only if its VL is empty up to the end of the receiver's buffer. So no header
      stands behind another packet there, where it could not get at its escape (Duato 1993). Options on VLs that are
      no escapes need it.

    **Functions that choose at the source** change the route field at the input ports of `rewrites_at`, once. There they
    have these members:

    - `random` (in, `RANDOM_BITS`): a random number, another one for each packet.
    - `loads` (in, P x `LOAD_BITS`), only with `uses_loads`: of each output port (`PortLoads`).
    - `new_route` (out, `route_bits(config)`): the low bits of the route, as the header crosses. `decide_route` is the
      twin.

    `decide_options` is the twin of `options`. `Network` refuses an adaptive function by `hdl/network_waits.py`: a cycle
    of the extended dependency graph of the escapes, or a way that leads round for ever.
    """

    strips = False
    by_source = False
    sees_vl = False
    changes_vl = False
    position_layout: data.StructLayout | None = None
    uses_table = False
    by_place = False
    in_order = True
    adaptive = False
    options_empty = False
    uses_loads = False

    def __init__(self, config: RouterConfig, *, in_port: int) -> None:
        self.check_config(config)
        self.config, self.in_port = config, in_port
        members: dict[str, Any] = {"route": In(self.route_bits(config)), "port": Out(config.ports)}
        if self.depends_on_vl():
            members["vl"] = In(config.link.vl_bits)
        if self.changes_vl:
            members["out_vl"] = Out(config.link.vl_bits)
        if self.position_layout is not None:
            members["position"] = In(self.position_layout)
        if self.uses_table:
            members["table"] = Out(TableWriteSignature(config))
        if self.adaptive:
            members |= {"options": Out(config.ports), "option_vl": Out(config.link.vl_bits)}
        if in_port in self.rewrites_at(config):
            members |= {"random": In(RANDOM_BITS), "new_route": Out(self.route_bits(config))}
            if self.uses_loads:
                members["loads"] = In(LOAD_BITS).array(config.ports)
        super().__init__(members)

    @classmethod
    def depends_on_vl(cls) -> bool:
        """Whether the decision depends on the VL that a packet came on."""
        return cls.sees_vl or cls.changes_vl

    @classmethod
    def check_config(cls, config: RouterConfig) -> None:
        """Raises ConfigError if a router with `config` cannot have this function. A derived class adds its needs."""
        if config.multicast_nodes and not cls.by_place:
            raise ConfigError(
                f"RouterConfig.multicast_nodes = {config.multicast_nodes}: routing {config.routing!r} does not go by "
                "the router and the destination alone"
            )
        selection = f"RouterConfig.vl_selection = {config.vl_selection!r}"
        if cls.changes_vl and config.vl_selection != "routing":
            raise ConfigError(f"{selection}: routing {config.routing!r} chooses the VL: must be 'routing'")
        if not cls.changes_vl and config.vl_selection == "routing":
            raise ConfigError(f"{selection}: routing {config.routing!r} does not choose VLs")
        if cls.sees_vl and config.vl_selection not in ("same", "routing"):
            raise ConfigError(f"{selection}: routing {config.routing!r} goes by the VL: must be 'same'")
        if config.routing_seed != 1 and not cls.rewrites_at(config):
            raise ConfigError(
                f"RouterConfig.routing_seed = {config.routing_seed}: routing {config.routing!r} has no random numbers"
            )
        seen = WORD_ROUTE_BITS if config.link.flit_bits == 32 else ROUTE_BITS
        if config.multicast_nodes and cls.route_bits(config) >= seen:
            raise ConfigError(
                f"RouterConfig.multicast_nodes = {config.multicast_nodes}: routing {config.routing!r} uses all "
                f"{seen} route bits of {config.link.flit_bits}-bit flits, and a set needs one for its mark"
            )
        if cls.in_order:
            return
        name = f"routing {config.routing!r} does not keep packets in order"
        if config.control_vl is not None:
            raise ConfigError(
                f"LinkConfig.vls = {config.link.vls}: {name}, as control packets need: at most 15"
            )
        if config.link.restart:
            raise ConfigError(f"LinkConfig.restart = True: {name}, as the hosts of cards need")

    @classmethod
    def check(cls, network: Topology) -> None:
        """Raises ValueError, naming the element, if `network` is none that the function can route.

        A derived class says what it needs; the base refuses tables that it would ignore.
        """
        if network.tables:
            raise ValueError(
                f"routing {network.router.routing!r} makes its own routes: `tables` must be empty"
            )

    @classmethod
    def route_bits(cls, config: RouterConfig) -> int:
        """Bits of the route field that the function looks at."""
        return NODE_BITS

    @classmethod
    def position_of(cls, network: Topology, router: int) -> Mapping[str, int]:
        """The fields of `position_layout` for a router."""
        return {}

    @classmethod
    def route_field(cls, network: Topology, router: int, in_port: int, destination: int) -> int:
        """The header's route field for a packet to node `destination` that enters at input port `in_port` of `router`.

        Here it is the node's number.
        """
        return destination

    @classmethod
    def decide(cls, config: RouterConfig, arrival: Arrival) -> tuple[int | None, int]:
        """The hardware's twin: the output port, None if there is none, and the output VL."""
        raise NotImplementedError(f"{cls.__name__} has no decide()")

    @classmethod
    def decide_options(cls, config: RouterConfig, arrival: Arrival) -> tuple[tuple[int, ...], int]:
        """The twin of `options` and `option_vl`: ports, and the VL of them all."""
        raise NotImplementedError(f"{cls.__name__} has no decide_options()")

    @classmethod
    def rewrites_at(cls, config: RouterConfig) -> Sequence[int]:
        """The input ports where the function gives a `new_route`: none here."""
        return ()

    @classmethod
    def decide_route(cls, config: RouterConfig, arrival: Arrival) -> int:
        """The twin of `new_route`."""
        raise NotImplementedError(f"{cls.__name__} has no decide_route()")

    @classmethod
    def ways(cls, network: Topology, router: int, in_port: int, vl: int, goal: int) -> Ways:
        """All that a packet may do at `router`, for the check of functions that are not `in_order`.

        `goal` is the destination's number, or one beyond those of the nodes that only the derived class understands.
        """
        route = cls.route_field(network, router, in_port, goal)
        arrival = Arrival(in_port, vl, route, cls.position_of(network, router))
        port, out_vl = cls.decide(network.router, arrival)
        options, option_vl = cls.decide_options(network.router, arrival) if cls.adaptive else ((), 0)
        return Ways(
            () if port is None else ((port, out_vl, goal),), tuple((one, option_vl, goal) for one in options)
        )

    @classmethod
    def followed_vls(cls, config: RouterConfig) -> Sequence[int]:
        """VLs on which `Network` follows packets of a function that is not `in_order`. All others must be like them,
        channel by channel. They are all VLs here."""
        return range(config.data_vls)

    @classmethod
    def next_port(
        cls, network: Topology, router: int, in_port: int, vl: int, destination: int
    ) -> tuple[int | None, int]:
        """Output port, None if there is none, and output VL, at `router`.

        They are those of a packet to node `destination` that came on VL `vl` of `in_port`.
        """
        route = cls.route_field(network, router, in_port, destination)
        return cls.decide(network.router, Arrival(in_port, vl, route, cls.position_of(network, router)))

    @classmethod
    def next_ports(
        cls, network: Topology, routers: Any, in_ports: Any, vls: Any, destinations: Any
    ) -> tuple[Any, Any]:
        """`next_port` of many packets at once: arrays of numbers, -1 for no port.

        This is a loop. A derived class for large networks may give the same in numpy (`steps`).
        """
        found = [
            cls.next_port(network, *one)
            for one in zip(*(each.tolist() for each in (routers, in_ports, vls, destinations)), strict=True)
        ]
        ports = np.array([-1 if port is None else port for port, _ in found], np.int32)
        return ports, np.array([vl for _, vl in found], np.int32)

    @classmethod
    def steps(cls) -> Callable[..., tuple[Any, Any]]:
        """The function `next_ports` to go by: this class's, or the loop if a more derived class decides anew."""
        order = cls.__mro__

        def depth(name: str) -> int:
            return next(number for number, one in enumerate(order) if name in vars(one))

        follows = ["next_port"]
        if cls.next_port.__func__ is RoutingFunction.next_port.__func__:  # type: ignore[attr-defined]
            follows += ["decide", "route_field", "position_of"]
        if all(depth("next_ports") <= depth(name) for name in follows):
            return cls.next_ports
        return partial(RoutingFunction.next_ports.__func__, cls)  # type: ignore[attr-defined]

    def elaborate(self, platform: object) -> Module:
        raise NotImplementedError(f"{type(self).__name__} has no elaborate()")
