"""How often coroutines wake for GM messages."""

from lanikai.sim.experiments.measure.gm_hosts import start_gm

PORT = 2


async def messages(cluster, spec):
    """Send `spec["messages"]` messages of `spec["bytes"]` from node 0 to node 1.

    Each goes `spec["gap_cycles"]` after the one before has ended, or without a gap four at once. Gives the wake-ups of
    every coroutine, those of the start-up left out.
    """
    wakeups = cluster.clock.count_wakeups()
    libraries = start_gm(cluster)
    sender, receiver = [await libraries[node].open_port(PORT) for node in (0, 1)]
    source = await sender.dma_malloc(spec["bytes"])
    for _ in range(4):
        await receiver.provide_receive_buffer(await receiver.dma_malloc(spec["bytes"]))
    ended, received = cluster.clock.flag(), []

    async def receive():
        while True:
            message = await receiver.receive()
            received.append(message.length)
            await receiver.provide_receive_buffer(message.buffer)
            if len(received) == spec["messages"]:
                ended.set()

    async def send():
        handles = []
        for _ in range(spec["messages"]):
            handles.append(await sender.send(source, node=1, port=PORT))
            if spec["gap_cycles"]:
                await handles[-1].wait()
                await cluster.clock.sleep(spec["gap_cycles"])
            elif len(handles) >= 4:
                await handles[-4].wait()

    cluster.clock.spawn(receive(), "program receives")
    await cluster.clock.sleep(5000)
    before = dict(wakeups)
    cluster.clock.spawn(send(), "program sends")
    await ended.wait()
    await cluster.clock.sleep(5000)
    return {name: count - before.get(name, 0) for name, count in wakeups.items()}
