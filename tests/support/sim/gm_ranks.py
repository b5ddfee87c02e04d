"""Ranks over GM on the Python cluster of the firmware tests."""

from __future__ import annotations

from typing import Any

from lanikai.sim.host.mpi.world import run_ranks, start_mpi

from support.firmware.python_cluster import Cluster


def run(cluster: Cluster, main: Any, nodes: list[int] | None = None, **options: Any) -> list[Any]:
    """Run `main(world)` as a rank on every node. All tokens, buffers and ports come home."""

    free = [gm.memory.free_bytes for gm in cluster.gms]

    async def everything() -> list[Any]:
        worlds = await start_mpi(cluster.gms, nodes, **options)
        results = await run_ranks(cluster.world, worlds, main)
        await cluster.settle()
        return results

    results = cluster.run(everything())
    cluster.assert_home()
    for gm in cluster.gms:
        assert not gm._ports
    assert [gm.memory.free_bytes for gm in cluster.gms] == free
    return results
