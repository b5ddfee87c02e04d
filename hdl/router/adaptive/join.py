"""The parts for adaptive routing, joined with a router's stages."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from amaranth import Cat, Module

from ..routing import needs_loads, routing_class
from .port_loads import PortLoads

__all__ = ["add_adaptive"]


def add_adaptive(
    m: Module, router: Any, routes: Sequence[Any], allocation: Any, crossbar: Any, transmitters: Sequence[Any]
) -> None:
    """Adds the loads of the outputs to `m`, and joins what stages 2 to 5 of `router` (`Router`) have for routing by a
    choice. Nothing is added without."""
    config, function = router.config, routing_class(router.config)
    for i in function.rewrites_at(config):
        m.d.comb += [
            routes[i].read_select.eq(crossbar.read_select[i]),
            getattr(crossbar, f"new_route_{i}").eq(routes[i].new_route),
        ]
    if not needs_loads(config):
        return
    m.submodules.port_loads = loads = PortLoads(config, credit_flits=router.credit_flits)
    m.d.comb += [
        loads.written.eq(Cat(*crossbar.write_valid)),
        loads.returned.eq(Cat(*(transmit.returned for transmit in transmitters))),
    ]
    for i in function.rewrites_at(config):
        m.d.comb += [mine.eq(load) for mine, load in zip(routes[i].loads, loads.loads, strict=True)]
    if not function.adaptive:
        return
    m.d.comb += [
        *(mine.eq(row) for mine, row in zip(allocation.before, loads.before, strict=True)),
        *(mine.eq(route.found_options) for mine, route in zip(allocation.found_options, routes, strict=True)),
        *(
            mine.eq(route.found_option_vl)
            for mine, route in zip(allocation.found_option_group, routes, strict=True)
        ),
    ]
    if function.options_empty:
        m.d.comb += [mine.eq(out.empty) for mine, out in zip(allocation.empty, transmitters, strict=True)]
