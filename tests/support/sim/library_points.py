"""Random workloads of MPI and of the bandwidth managers on a cluster, with silences between their steps."""

from random import Random

import numpy as np
from lanikai.hdl.nic.ports import REGISTER_BASE
from lanikai.sim.bandwidth.errors import BandwidthError
from lanikai.sim.experiments.measure.gm_hosts import start_gm
from lanikai.sim.host.mpi.world import run_ranks, start_mpi
from lanikai.sim.inside import native_api
from lanikai.sim.manager.client import BandwidthClient
from lanikai.sim.manager.config import ManagerConfig
from lanikai.sim.manager.start import start_managers

from .skip_points import NIC_REGISTERS, READ_WITHOUT_EFFECT


async def _end(cluster, spec, stamps):
    await cluster.clock.sleep(spec["silence_cycles"])
    registers = [
        [
            await node.processor.read(REGISTER_BASE + NIC_REGISTERS[name].offset)
            for name in READ_WITHOUT_EFFECT
        ]
        for node in cluster.nodes
    ]
    return {
        "stamps": stamps,
        "registers": registers,
        "end": cluster.clock.cycle,
        "skipped": cluster.skipped_cycles,
        "evaluated": native_api.evaluated(),
    }


async def mpi(cluster, spec):
    """Every rank makes the same `spec["steps"]` random collective calls, each after a random silence of its own."""
    if spec.get("check"):
        native_api.check_quiet()
    stamps = []
    worlds = await start_mpi(start_gm(cluster))
    seed, steps = cluster.random.random(), spec["steps"]

    async def main(world):
        rank, size = world.Get_rank(), world.Get_size()
        shared, own = Random(seed), Random(f"{seed} {rank}")
        for step in range(steps):
            count, kind = (
                shared.choice([1, 20, 900]),
                shared.choice(["allreduce", "bcast", "ring", "alltoall"]),
            )
            root = shared.randrange(size)
            await cluster.clock.sleep(own.randrange(1, spec["silence_cycles"]))
            out = np.arange(count * size, dtype=np.int32) + rank
            into = np.zeros(count * size, np.int32)
            if kind == "allreduce":
                await world.Allreduce(out, into)
            elif kind == "bcast":
                await world.Bcast(out, root=root)
            elif kind == "ring":
                await world.Sendrecv(out, (rank + 1) % size, recvbuf=into, source=(rank - 1) % size)
            else:
                await world.Alltoall(out, into)
            stamps.append([cluster.clock.cycle, rank, step, int(into.sum()), int(out.sum())])

    await run_ranks(cluster.clock, worlds, main)
    return await _end(cluster, spec, stamps)


async def managers(cluster, spec):
    """Flows between random nodes ask the managers for bandwidth, send at their rate, and give it back."""
    if spec.get("check"):
        native_api.check_quiet()
    libraries, stamps = start_gm(cluster), []
    nodes = range(len(libraries))
    ready = await start_managers(libraries, cluster.network, ManagerConfig())
    ports = [await library.open_port(2) for library in libraries]
    left, over = [len(nodes)], cluster.clock.flag()

    async def receive(node):
        for _ in range(4):
            await ports[node].provide_receive_buffer(await ports[node].dma_malloc(8192))
        while True:
            message = await ports[node].receive()
            stamps.append([cluster.clock.cycle, "received", node, len(message.read())])
            await ports[node].provide_receive_buffer(message.buffer)

    async def program(node, random):
        client = BandwidthClient(ready[node], ports[node])
        buffer = await ports[node].dma_malloc(8192)
        for _ in range(spec["steps"]):
            await cluster.clock.sleep(random.randrange(1, spec["silence_cycles"]))
            target = random.choice([other for other in nodes if other != node])
            try:
                if random.random() < 0.5:
                    held, back = (
                        await client.request(target, 2, random.choice([2.0, 20.0, 70.0])),
                        client.release,
                    )
                else:
                    held, back = await client.join(target, 2, weight=random.randrange(1, 4)), client.leave
            except BandwidthError as error:
                stamps.append([cluster.clock.cycle, node, str(error)])
                continue
            stamps.append([cluster.clock.cycle, node, "held", client.rate(target, 2)])
            for _ in range(random.randrange(1, 4)):
                handle = await ports[node].send(buffer, random.randrange(1, 8192), node=target, port=2)
                await handle.wait()
            await back(held)
            stamps.append([cluster.clock.cycle, node, "given back"])
        left[0] -= 1
        if not left[0]:
            over.set()

    for node in nodes:
        cluster.clock.spawn(receive(node), f"receiver {node}")
        cluster.clock.spawn(program(node, Random(cluster.random.random())), f"program {node}")
    await over.wait()
    return await _end(cluster, spec, stamps)
