"""Configuration of the router."""

from __future__ import annotations

from functools import cached_property
from typing import Any, Literal, Self

from pydantic import Field, SerializerFunctionWrapHandler, model_serializer, model_validator

from .base import Config
from .link import ROUTE_BITS, WORD_ROUTE_BITS, LinkConfig

__all__ = ["SERVICE_LEVELS", "RouterConfig"]

SERVICE_LEVELS = 16
"""Service levels that the header can name."""


class RouterConfig(Config):
    """The five-stage wormhole router (yum-2006 3.1)."""

    link: LinkConfig = Field(default_factory=LinkConfig, description="every port's link")
    ports: int = Field(4, ge=2, le=64, description="ports")
    input_buffer_flits: int = Field(10, ge=2, le=1024, description="input buffer of each VL, flits")
    output_buffer_flits: int = Field(
        10, ge=2, le=1024, description="output buffer of each VL, flits; not with `pipelined`, which has none"
    )
    buffer_memory: Literal["auto", "distributed"] = Field(
        "auto",
        description="memory of the flit buffers: auto: block RAM where that is smaller on an FPGA; distributed: always "
        "read at once, which takes more area and simulates faster. What a router does is the same",
    )
    arbiter: str = Field("round_robin", description="name in `lanikai.hdl.arbiter.ARBITERS`")
    allocator: str = Field("separable", description="name in `lanikai.hdl.router.allocators.ALLOCATORS`")
    allocator_iterations: int = Field(3, ge=1, le=16, description="iterations of the allocator `islip`")
    vl_arbiter: str = Field(
        "round_robin",
        description="of the links, crossbar outputs and crossbar inputs: name in "
        "`lanikai.hdl.vl_arbiter.registry.VL_ARBITERS`",
    )
    vl_table_entries: int = Field(64, ge=1, le=64, description="entries of each VL arbitration table")
    header_lookahead: bool | None = Field(
        None,
        description="route the next header of a VL, and find its output VL, while the packet before it still crosses: "
        "no gap between packets; None: where packets keep their VL and `vl_arbiter` is not round_robin",
    )
    vl_selection: Literal["same", "service_level", "any", "routing"] = Field(
        "same",
        description="output VL of a packet: its input VL; by its service level; any free one of its class; what the "
        "routing function says",
    )
    vl_classes: tuple[int, ...] = Field(
        (), description="class of each data VL, numbered from 0, for `any` (empty: all in class 0)"
    )
    service_level_map: tuple[int, ...] = Field(
        (),
        description="for each of the 16 service levels after reset, its VL (`service_level`) or its class "
        "(`any`); empty: service level modulo the number of VLs or classes",
    )
    routing: str = Field(
        "auto",
        description="name in `lanikai.hdl.router.routing.ROUTING`; auto: source routes; where they do not fit, or "
        "could deadlock in a torus, the coordinates of a mesh or torus, or forwarding tables (`Network`)",
    )
    forwarding_entries: int = Field(
        64, ge=1, le=1024, description="nodes that the forwarding table of `table` routing has a row for"
    )
    routing_seed: int = Field(
        1, ge=1, le=4095, description="of the random numbers of `valiant` and `ugal` in all routers"
    )
    node_ports: int = Field(
        1,
        ge=1,
        le=32,
        description="the first so many ports lead to nodes, for `valiant` and `ugal`; a network sets it",
    )
    management: bool = Field(
        False, description="port 0 is the management port: control packets to and from the router's agent"
    )
    management_flits: int = Field(
        32, ge=2, le=256, description="longest packet of the management port, flits"
    )
    pipelined: bool = Field(
        False,
        description="registers between the choices of stage 4: about three times the clock, for a VL arbiter and "
        "crossbar that go round in bursts; round_robin, packets that keep their VL, no agent and no `link.restart`; no "
        "output buffers",
    )
    activity_counters: bool = Field(False, description="count buffer, arbiter, crossbar and link activity")
    power_budget: int = Field(
        0,
        ge=0,
        lt=1 << 30,
        description="energy credits that flits may take as they cross, in any `power_window_cycles`; 0: no limit",
    )
    power_weights: tuple[int, ...] = Field(
        (), description="credits that a flit to each output takes, 1 to 65535 (empty: 1 each)"
    )
    power_window_cycles: int = Field(
        500, ge=2, le=65536, description="cycles after which a flit's energy credits come back"
    )
    power_share: int = Field(
        0,
        ge=0,
        lt=1 << 30,
        description="energy credits that a router lends to a neighbour at a time; 0: none",
    )
    multicast_nodes: int = Field(
        0,
        ge=0,
        lt=ROUTE_BITS,
        description="nodes from 0 on that one packet can go to as a set, a copy each (docs/router.md); 0: no multicast",
    )
    status_outputs: bool = Field(
        False, description="outputs for injection control: free VLs of each output, full input buffers"
    )

    @model_validator(mode="after")
    def _check(self) -> Self:
        if self.ports > 1 << self.link.hop_bits:
            raise ValueError(
                f"ports = {self.ports}: a hop of {self.link.hop_bits} bits names at most "
                f"{1 << self.link.hop_bits} ports; raise link.hop_bits"
            )
        if self.node_ports > self.ports:
            raise ValueError(f"node_ports = {self.node_ports}: routers have {self.ports} ports")
        if self.header_lookahead and self.vl_selection != "same":
            raise ValueError(
                f"header_lookahead = True: vl_selection = {self.vl_selection!r}: only with 'same', where the output VL "
                "of a packet is known before one is free"
            )
        if self.pipelined:
            self._check_pipelined()
        if self.multicast_nodes:
            self._check_multicast()
        if self.power_budget:
            self._check_power()
        elif self.power_share or self.power_weights:
            raise ValueError("power_share and power_weights: need a power_budget, whose credits they are")
        if self.management and self.control_vl is None:
            raise ValueError(
                f"management = True: link.vls = {self.link.vls}: must be 16, since control packets have VL 15"
            )
        if self.vl_classes and len(self.vl_classes) != self.data_vls:
            raise ValueError(
                f"vl_classes has {len(self.vl_classes)} entries: one for each of the {self.data_vls} data VLs"
            )
        for vl, number in enumerate(self.vl_classes):
            if not 0 <= number < self.data_vls:
                raise ValueError(f"vl_classes[{vl}] = {number}: 0 to {self.data_vls - 1}")
        for number in range(max(self.vl_classes, default=0)):
            if number not in self.vl_classes:
                raise ValueError(f"vl_classes: class {number} has no VL")
        if self.service_level_map and len(self.service_level_map) != SERVICE_LEVELS:
            raise ValueError(
                f"service_level_map has {len(self.service_level_map)} entries: "
                f"one for each of {SERVICE_LEVELS}"
            )
        for level, group in enumerate(self.service_level_map):
            if self.vl_selection == "any":
                if not 0 <= group < len(self.vl_groups):
                    raise ValueError(f"service_level_map[{level}] = {group}: class {group} has no VL")
            elif group == self.control_vl:
                raise ValueError(
                    f"service_level_map[{level}] = {group}: VL {group} carries control packets alone"
                )
            elif not 0 <= group < self.data_vls:
                raise ValueError(f"service_level_map[{level}] = {group}: a data VL, 0 to {self.data_vls - 1}")
        return self

    def _check_power(self) -> None:
        """Raises ValueError for energy credits with which a router would never let a flit cross."""
        weights = self.initial_power_weights
        if len(weights) != self.ports:
            raise ValueError(f"power_weights has {len(weights)} entries: one for each of {self.ports} ports")
        for port, weight in enumerate(weights):
            if not 1 <= weight <= 65535:
                raise ValueError(f"power_weights[{port}] = {weight}: 1 to 65535")
        least = sum(weights) + self.power_share * self.ports
        if self.power_budget < least:
            raise ValueError(
                f"power_budget = {self.power_budget}: at least {least}, a flit to each output and a share lent to each "
                "neighbour"
            )

    def _check_pipelined(self) -> None:
        """Raises ValueError for what a pipelined router does not have."""
        for name, value, only in (
            ("allocator", self.allocator, "separable"),
            ("vl_arbiter", self.vl_arbiter, "round_robin"),
            ("vl_selection", self.vl_selection, "same"),
            ("header_lookahead", bool(self.header_lookahead), False),
            ("management", self.management, False),
            ("activity_counters", self.activity_counters, False),
            ("status_outputs", self.status_outputs, False),
            ("power_budget", self.power_budget, 0),
            ("link.restart", bool(self.link.restart), False),
        ):
            if value != only:
                raise ValueError(f"pipelined = True: {name} = {value!r}: must be {only!r}")
        if self.routing not in ("auto", "source", "dimension_order"):
            raise ValueError(
                f"pipelined = True: routing = {self.routing!r}: must be auto, source or dimension_order"
            )
        if "output_buffer_flits" in self.model_fields_set:
            raise ValueError(
                f"pipelined = True: output_buffer_flits = {self.output_buffer_flits}: leave it out, as a pipelined "
                "router has no output buffers"
            )

    def _check_multicast(self) -> None:
        """Raises ValueError for what a router with multicast does not have, and for sets that no header holds."""
        for name, value, only in (
            ("pipelined", self.pipelined, False),
            ("allocator", self.allocator, "separable"),
            ("vl_arbiter", self.vl_arbiter, "round_robin"),
            ("vl_selection", self.vl_selection, "same"),
            ("header_lookahead", bool(self.header_lookahead), False),
            ("management", self.management, False),
            ("activity_counters", self.activity_counters, False),
            ("status_outputs", self.status_outputs, False),
            ("power_budget", self.power_budget, 0),
            ("link.restart", bool(self.link.restart), False),
        ):
            if value != only:
                raise ValueError(
                    f"multicast_nodes = {self.multicast_nodes}: {name} = {value!r}: must be {only!r}"
                )
        most = (WORD_ROUTE_BITS if self.link.flit_bits == 32 else ROUTE_BITS) - 1
        if self.multicast_nodes > most:
            raise ValueError(
                f"multicast_nodes = {self.multicast_nodes}: the route of {self.link.flit_bits}-bit flits names at "
                f"most {most}"
            )

    @cached_property
    def multicast_flits(self) -> int:
        """The longest packet that may go to several nodes, flits: it must fit into every buffer whole."""
        return min(self.input_buffer_flits, self.output_buffer_flits)

    @cached_property
    def initial_power_weights(self) -> tuple[int, ...]:
        """`power_weights`, or the ones that stand for an empty tuple."""
        return self.power_weights or (1,) * self.ports

    @model_serializer(mode="wrap")
    def _without_output_buffers(self, serialize: SerializerFunctionWrapHandler) -> dict[str, Any]:
        """Leave out the field that a pipelined router does not have, so that what is written can be read again."""
        found: dict[str, Any] = serialize(self)
        if self.pipelined:
            found.pop("output_buffer_flits", None)
        return found

    def replace(self, **changes: Any) -> Self:
        """As `Config.replace`. A router that is pipelined then does not keep the `output_buffer_flits` of this one."""
        fields = {name: getattr(self, name) for name in type(self).model_fields}
        if changes.get("pipelined", self.pipelined):
            del fields["output_buffer_flits"]
        return type(self)(**fields | changes)

    @cached_property
    def control_vl(self) -> int | None:
        """The VL of control packets, alone on it and always first: 15 if there are 16, else None."""
        return 15 if self.link.vls == 16 else None

    @cached_property
    def maps_service_levels(self) -> bool:
        """Whether `service_level_map` has a say in the output VL."""
        return self.vl_selection in ("service_level", "any")

    @cached_property
    def data_vls(self) -> int:
        """VLs that data packets may have, numbered from 0."""
        return self.link.vls if self.control_vl is None else self.link.vls - 1

    @cached_property
    def vl_groups(self) -> tuple[tuple[int, ...], ...]:
        """VLs among which a packet's output VL is chosen, by the number that `service_level_map` has for it.

        They are one VL each, or with `any` those of a class. The control VL is in none.
        """
        if self.vl_selection != "any":
            return tuple((vl,) for vl in range(self.data_vls))
        classes = self.vl_classes or (0,) * self.data_vls
        return tuple(
            tuple(vl for vl, mine in enumerate(classes) if mine == number)
            for number in range(max(classes) + 1)
        )

    @cached_property
    def initial_service_level_map(self) -> tuple[int, ...]:
        """`service_level_map`, or the map that stands for an empty one: service levels in turn over the groups."""
        return self.service_level_map or tuple(sl % len(self.vl_groups) for sl in range(SERVICE_LEVELS))
