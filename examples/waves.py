"""Waves of one packet: the message of `first_message.py` with every signal written to a file for GTKWave."""

from pathlib import Path

import lanikai


async def sender(host):
    port = await host.gm.open_port(0)
    buffer = await port.dma_malloc(64)
    start = host.cycle
    await (await port.send(buffer, 64, node=1, port=0)).wait()
    return start, host.cycle


async def receiver(host):
    port = await host.gm.open_port(0)
    await port.provide_receive_buffer(await port.dma_malloc(64))
    await port.receive()


run = lanikai.Cluster(nodes=2).run([sender, receiver], out="waves", waves=True)
first, last = run.values[0]
print(f"the message goes in cycles {first} to {last}; a cycle is 10 steps of time in the file")
print(
    *(f"{path.name}: {path.stat().st_size / 1e6:.1f} MB" for path in sorted(Path("waves").glob("cluster.*"))),
    sep="\n",
)
print(f"open them with: gtkwave {run.waves.with_suffix('.gtkw')}")
