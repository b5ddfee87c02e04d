"""Firmware on every card of a cluster, and a host interface on every host: both as the registries have them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from lanikai.hdl.config import Config, ConfigError

if TYPE_CHECKING:
    from lanikai.firmware.program import FirmwareProgram

    from ...systems.cluster import Cluster

__all__ = ["open_programs", "start_hosts"]


def start_hosts(
    cluster: Cluster,
    interface: str,
    *,
    config: Config | None = None,
    costs: Config | None = None,
    started: Callable[[Any], None] = lambda program: None,
    nodes: Sequence[int] | None = None,
) -> list[Any]:
    """Start the program `ClusterConfig.firmware` on every card, and the library of `interface` on every host.

    Returns the libraries, by node. Both are under the watchdog's eyes. Raises ConfigError for a program that the
    interface cannot speak to, and for a card that lacks something.

    - `config`: that of the program; None for its own defaults.
    - `costs`: those of the library's calls.
    - `started`: called with each node's program.
    - `nodes`: these alone; None for all.
    """
    from ...host.interfaces import find_interface

    kind = find_interface(interface)
    if costs is not None and not isinstance(costs, kind.Costs):
        raise ConfigError(
            f"{type(costs).__name__}: not what calls of the host interface {interface!r} cost; it takes "
            f"{kind.Costs.__name__}"
        )
    program_class = _program_for(cluster.config.firmware, interface, kind.speaks)
    nic = cluster.config.nic
    libraries = []
    for node in cluster.nodes:
        if nodes is not None and node.number not in nodes:
            continue
        others = [other.number for other in cluster.nodes if other is not node]
        routes = {other: cluster.network.source_route(node.number, other) for other in others}
        program = program_class(node, node=node.number, nic=nic, routes=routes, config=config)
        program.start()
        started(program)
        library = kind.on_node(node.host, nic=nic, routes=routes, config=program.config, costs=costs)
        cluster.observe(program)
        for part in kind.observed(library):
            cluster.observe(part)
        libraries.append(library)
    return libraries


async def open_programs(
    cluster: Cluster,
    interface: str,
    libraries: Sequence[Any],
    nodes: Sequence[int] | None = None,
    **settings: Any,
) -> list[Any]:
    """Prepare for host programs on `nodes` (by default one for each of `libraries`) and have the watchdog look at them.
    Returns what each is given."""
    from ...host.interfaces import find_interface

    kind = find_interface(interface)
    opened = await kind.open(libraries, range(len(libraries)) if nodes is None else nodes, **settings)
    for one in opened:
        for part in kind.observed_program(one):
            cluster.observe(part)
    return opened


def _program_for(firmware: str | None, interface: str, speaks: str) -> type[FirmwareProgram[Any]]:
    """The class of the cluster's program. Raises ConfigError for one that does not speak `speaks`."""
    from lanikai.firmware.programs import PROGRAMS, find_program

    fitting = ", ".join(name for name, one in PROGRAMS.items() if one.speaks == speaks)
    if firmware is None:
        raise ConfigError(
            f"ClusterConfig.firmware = None: the host interface {interface!r} needs one of: {fitting}"
        )
    program = find_program(firmware)
    if program.speaks != speaks:
        raise ConfigError(
            f"ClusterConfig.firmware = {firmware!r}: it speaks {program.speaks}, the host interface {interface!r} "
            f"needs {speaks}: one of: {fitting}"
        )
    return program
