"""A bandwidth reservation: a flow of 40 MB/s is granted and kept, another of 60 from the same host is refused."""

from lanikai.sim.bandwidth.errors import RefusedError
from lanikai.sim.manager.client import BandwidthClient
from lanikai.sim.manager.config import ManagerConfig
from lanikai.sim.manager.start import start_managers

import lanikai

BYTES, MESSAGES = 32768, 4


async def managers(cluster, hosts):
    """A bandwidth manager on each host; that of host 3 is the master."""
    return await start_managers(hosts, cluster.network, ManagerConfig(master=3))


async def sender(host):
    port = await host.gm.open_port(0)
    client = BandwidthClient(host.shared[host.node], port)
    grant = await client.request(node=1, port=0, mb_per_s=40.0)
    print(f"granted: {grant.mb_per_s:.1f} MB/s to host 1")
    try:
        await client.request(node=2, port=0, mb_per_s=60.0)
    except RefusedError as refused:
        print(f"refused: 60 MB/s to host 2; {refused.where} has {refused.left_mb_per_s:.1f} MB/s left")
    buffer = await port.dma_malloc(BYTES)
    start = host.microseconds
    sent = [await port.send(buffer, BYTES, node=1, port=0) for _ in range(MESSAGES)]
    for message in sent:
        await message.wait()
    achieved = BYTES * MESSAGES / (host.microseconds - start)
    await client.release(grant)
    return achieved


async def receiver(host):
    port = await host.gm.open_port(0)
    for _ in range(MESSAGES):
        await port.provide_receive_buffer(await port.dma_malloc(BYTES))
    for _ in range(MESSAGES):
        await port.receive()


run = lanikai.Cluster(nodes=4).run([sender, receiver], prepare=managers)
print(f"achieved: {run.values[0]:.1f} MB/s")
