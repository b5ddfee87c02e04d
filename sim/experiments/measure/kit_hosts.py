"""The host kit on every node of a cluster: the work queue program on its card, the driver on its host."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .hosts import start_hosts

if TYPE_CHECKING:
    from lanikai.firmware.work_queue.config import WorkQueueConfig
    from lanikai.firmware.work_queue.program import WorkQueueProgram

    from ...host.config import KitConfig
    from ...host.kit.driver import Driver
    from ...systems.cluster import Cluster

__all__ = ["start_kit"]


def start_kit(
    cluster: Cluster, config: WorkQueueConfig | None = None, kit: KitConfig | None = None
) -> tuple[list[WorkQueueProgram], list[Driver]]:
    """Start both on every node, the programs under the watchdog's eyes; programs and drivers by node. Raises
    ConfigError for a card that cannot have work queues, and for a cluster whose firmware is another one."""
    programs: list[WorkQueueProgram] = []
    drivers = start_hosts(cluster, "kit", config=config, costs=kit, started=programs.append)
    return programs, drivers
