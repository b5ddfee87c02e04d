"""A first message: one host sends five bytes to another, through cards and a router in RTL."""

import lanikai


async def sender(host):
    port = await host.gm.open_port(0)
    buffer = await port.dma_malloc(64)
    buffer.write(b"hello")
    message = await port.send(buffer, 5, node=1, port=0)
    await message.wait()
    print(f"host {host.node}: acknowledged after {host.microseconds:.1f} us")


async def receiver(host):
    port = await host.gm.open_port(0)
    await port.provide_receive_buffer(await port.dma_malloc(64))
    received = await port.receive()
    return received.read()


run = lanikai.Cluster(nodes=4).run([sender, receiver])
print(f"host 1 received {run.values[1]!r} in {run.cycles} cycles of the card's clock")
