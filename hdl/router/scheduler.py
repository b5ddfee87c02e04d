"""The VL arbiters as the router uses them, at crossbar inputs and at links: they choose the VL that goes next."""

from __future__ import annotations

from typing import Any

from amaranth import Cat, Module
from amaranth.lib.wiring import Out

from ..config import ConfigError, RouterConfig
from ..vl_arbiter.base import TableSignature, VlArbiter
from ..vl_arbiter.registry import VL_ARBITERS, make_vl_arbiter

__all__ = [
    "arbiter_kind",
    "has_tables",
    "looks_ahead",
    "share_table",
    "table_members",
    "vl_scheduler",
    "weighs_outputs",
]


def vl_scheduler(config: RouterConfig) -> VlArbiter:
    """A new arbiter of the kind `RouterConfig.vl_arbiter`. Raises ConfigError for an unknown name."""
    return make_vl_arbiter(
        config.vl_arbiter,
        vls=config.link.vls,
        control_vl=-1 if config.control_vl is None else config.control_vl,
        flit_bytes=config.link.flit_bytes,
        entries=config.vl_table_entries,
    )


def arbiter_kind(config: RouterConfig) -> type[VlArbiter]:
    """The class of the arbiter of `vl_scheduler`, with its abilities. Raises ConfigError for an unknown name."""
    name = config.vl_arbiter
    if name not in VL_ARBITERS:
        raise ConfigError(f"RouterConfig.vl_arbiter = {name!r}: one of {', '.join(sorted(VL_ARBITERS))}")
    return VL_ARBITERS[name]


def has_tables(config: RouterConfig) -> bool:
    """Whether the arbiter of `vl_scheduler` has tables that can be written. Raises ConfigError for an unknown name."""
    return arbiter_kind(config).has_tables


def weighs_outputs(config: RouterConfig) -> bool:
    """Whether crossbar outputs choose by VL, with a VL arbiter each. Raises ConfigError for an unknown name.

    They choose before the inputs do if packets keep their VL (`Allocator`). With an arbiter that does not weigh they go
    round the inputs: a VL arbiter would cost area and change nothing that anybody has asked for.
    """
    return arbiter_kind(config).weighs


def looks_ahead(config: RouterConfig) -> bool:
    """Whether headers are looked at before the packet ahead of them has left.

    It is `RouterConfig.header_lookahead`, or what None stands for: where weights share out a link, a VL that is not
    there between two packets has no share. Raises ConfigError for an unknown VL arbiter.
    """
    if config.header_lookahead is not None:
        return config.header_lookahead
    return config.vl_selection == "same" and weighs_outputs(config)


def share_table(m: Module, source: Any, *tables: Any) -> None:
    """Connects `source` (`TableSignature`, seen by the writer) to all `tables` (seen by the arbiters).

    A write goes to all of them or, while one of them is not ready, to none.
    """
    ready = Cat(*(table.ready for table in tables)).all()
    m.d.comb += source.ready.eq(ready)
    for table in tables:
        m.d.comb += [table.write.eq(source.write & ready), table.commit.eq(source.commit & ready)]
        m.d.comb += [
            getattr(table, name).eq(getattr(source, name))
            for name in ("high", "entry", "vl", "weight", "limit")
        ]


def table_members(config: RouterConfig, *dimensions: int, name: str = "table") -> dict[str, Any]:
    """The member `name` of a stage that passes tables on, an array with `dimensions`; {} without tables."""
    if not has_tables(config):
        return {}
    member = Out(TableSignature(vls=config.link.vls, entries=config.vl_table_entries))
    return {name: member.array(*dimensions) if dimensions else member}
