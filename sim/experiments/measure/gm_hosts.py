"""GM on every node of a cluster: the control program on its card, the library on its host."""

from __future__ import annotations

from collections.abc import Callable
from math import ceil
from typing import TYPE_CHECKING

from .hosts import start_hosts

if TYPE_CHECKING:
    from lanikai.firmware.gm import GmConfig, GmProgram

    from ...host.gm.library import Gm
    from ...systems.cluster import Cluster, ClusterConfig

__all__ = ["NODES", "gm_cluster", "patient", "start_gm"]

NODES = 4
"""Nodes of a cluster that need not have more: experiments that agree on it share one build."""


def gm_cluster() -> ClusterConfig:
    """The `lanai4` cluster of `NODES` nodes; those that an experiment does not use stay idle."""
    from ...systems.cluster import cluster_preset

    return cluster_preset("lanai4", nodes=NODES)


def patient(config: ClusterConfig, longest_idt_ticks: int) -> ClusterConfig:
    """The cluster with watchdogs that take no flow that waits for its time for one that is stuck.

    They wait for at least two IDTs of `longest_idt_ticks`. A time beyond their range turns the first one off.
    """
    from ...inside.watchdog import WATCHDOG_BITS

    cycles = 2 * ceil(longest_idt_ticks * config.nic.tick_cycles)
    watchdog = max(config.watchdog_cycles, cycles)
    return config.replace(
        watchdog_cycles=watchdog if watchdog < 1 << WATCHDOG_BITS else 0,
        delivery_cycles=max(config.delivery_cycles, cycles),
    )


def start_gm(
    cluster: Cluster,
    gm: GmConfig | None = None,
    started: Callable[[GmProgram], None] = lambda program: None,
) -> list[Gm]:
    """Start the cluster's firmware, which has to speak GM, on every card, the rate-controlled program by default; the
    library of every host, by node. `started` is called with each node's program. Raises as `start_hosts`."""
    return start_hosts(cluster, "gm", config=gm, started=started)
