"""The host kit on every node of a cluster: the work queue program on its card, the driver on its host."""

from __future__ import annotations

from typing import TYPE_CHECKING

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
    ConfigError for a card that cannot have work queues."""
    from lanikai.firmware.work_queue.program import WorkQueueProgram

    from ...host.kit.driver import Driver

    nic = cluster.config.nic
    programs, drivers = [], []
    for node in cluster.nodes:
        others = [other.number for other in cluster.nodes if other is not node]
        routes = {other: cluster.network.source_route(node.number, other) for other in others}
        program = WorkQueueProgram(node.processor, node=node.number, nic=nic, config=config)
        program.start()
        cluster.observe(program)
        programs.append(program)
        driver = Driver(node.host, nic=nic, routes=routes, config=config, kit=kit)
        driver.start()
        drivers.append(driver)
    return programs, drivers
