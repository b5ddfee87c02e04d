"""A fault: the cable of host 1 is cut. The sender's message ends with an error, and a later one arrives."""

from lanikai.sim.host.errors import GmError

import lanikai


async def sender(host):
    port = await host.gm.open_port(0)
    buffer = await port.dma_malloc(64)
    router, place = host.system.network.nodes[1]
    host.system.cut(router, place)
    try:
        await (await port.send(buffer, 64, node=1, port=0)).wait()
    except GmError as error:
        print(f"{host.microseconds / 1000:.0f} ms: {type(error).__name__}: {error}")
    host.system.join(router, place)
    while True:  # the node is taken for dead until it answers again
        try:
            await (await port.send(buffer, 64, node=1, port=0)).wait()
            return f"arrived at {host.microseconds / 1000:.0f} ms"
        except GmError:
            await host.sleep(1000)


async def receiver(host):
    port = await host.gm.open_port(0)
    await port.provide_receive_buffer(await port.dma_malloc(64))
    await port.receive()


cluster = lanikai.Cluster(nodes=4, cuts=True)
print(cluster.run([sender, receiver]).values[0])
