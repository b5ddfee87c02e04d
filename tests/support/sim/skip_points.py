"""A random workload with long silences, for the test that passing over quiet cycles changes nothing."""

from random import Random
from time import process_time

from lanikai.hdl.nic.nic import NIC_REGISTERS
from lanikai.hdl.nic.ports import REGISTER_BASE
from lanikai.sim.experiments.measure.gm_hosts import start_gm
from lanikai.sim.inside import native_api

PORT = 2
READ_WITHOUT_EFFECT = [
    name
    for name, register in NIC_REGISTERS.items()
    if name not in ("DOORBELL_QUEUE", "DOORBELL_WORD")
    and any(field.sw_readable for field in register.fields.values())
]


async def workload(cluster, spec):
    """Hosts send messages to others at random times, with silences up to `spec["silence_cycles"]`; some flows are held
    to a rate.

    Gives every time stamp, and at the end the clock, every register of every card, and how many cycles were passed
    over.
    """
    if spec.get("check"):
        native_api.check_quiet()
    libraries = start_gm(cluster)
    stamps = []
    left = cluster.clock.flag()
    todo = [2 * len(libraries) * spec["messages"]]
    ports = [await library.open_port(PORT) for library in libraries]

    def over(*what):
        stamps.append([cluster.clock.cycle, *what])
        todo[0] -= 1
        if not todo[0]:
            left.set()

    async def receiver(node):
        port = ports[node]
        for _ in range(4):
            await port.provide_receive_buffer(await port.dma_malloc(spec["bytes"]))
        while True:
            message = await port.receive()
            over("received", node, message.node, len(message.read()))
            await port.provide_receive_buffer(message.buffer)

    async def sender(node, random):
        port = ports[node]
        others = [other for other in range(len(libraries)) if other != node]
        for other in others:
            await port.set_idt(node=other, port=PORT, ticks=random.choice([0, 40, spec["idt_ticks"]]))
        buffer = await port.dma_malloc(spec["bytes"])
        for number in range(spec["messages"]):
            await cluster.clock.sleep(random.randrange(1, spec["silence_cycles"]))
            length = random.randrange(1, spec["bytes"])
            handle = await port.send(buffer, length, node=random.choice(others), port=PORT)
            if random.random() < 0.5:
                await handle.wait()
            over("sent", node, number, length)

    for node in range(len(libraries)):
        cluster.clock.spawn(receiver(node), f"receiver {node}")
        random = Random(cluster.random.random())
        cluster.clock.spawn(sender(node, random), f"sender {node}")
    await left.wait()
    # The packets still under way (the last acknowledgements) come to rest.
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
        "end": cluster.clock.cycle,
        "registers": registers,
        "skipped": cluster.skipped_cycles,
        "evaluated": native_api.evaluated(),
    }


async def nothing(cluster, spec):
    """Wait for ever."""
    while True:
        await cluster.clock.sleep(7_777)


async def few_of_many(cluster, spec):
    """Every card runs its firmware, and the first `spec["pairs"]` nodes send `spec["messages"]` messages each to as
    many of the last.

    Gives the messages received, the cycle of the end, the processor time of the messages' part, the evaluations of
    instances in it, and the peak of memory.
    """
    libraries = start_gm(cluster)
    count, pairs = len(libraries), spec["pairs"]
    nodes = [*range(pairs), *range(count - pairs, count)]
    ports = {node: await libraries[node].open_port(PORT) for node in nodes}
    received = [0]
    over = cluster.clock.flag()

    async def receive(node):
        port = ports[node]
        for _ in range(4):
            await port.provide_receive_buffer(await port.dma_malloc(spec["bytes"]))
        while True:
            message = await port.receive()
            received[0] += 1
            if received[0] == pairs * spec["messages"]:
                over.set()
            await port.provide_receive_buffer(message.buffer)

    async def send(node):
        buffer = await ports[node].dma_malloc(spec["bytes"])
        for _ in range(spec["messages"]):
            handle = await ports[node].send(buffer, spec["bytes"], node=count - pairs + node, port=PORT)
            await handle.wait()

    before, began, first = native_api.evaluated(), process_time(), cluster.clock.cycle
    for node in range(pairs):
        cluster.clock.spawn(receive(count - pairs + node), f"receiver {node}")
        cluster.clock.spawn(send(node), f"sender {node}")
    await over.wait()
    after = native_api.evaluated()
    return {
        "received": received[0],
        "cycles": cluster.clock.cycle - first,
        "seconds": process_time() - began,
        "evaluated": [after[i] - before[i] for i in range(2)],
        "memory_bytes": native_api.peak_memory_bytes(),
    }
