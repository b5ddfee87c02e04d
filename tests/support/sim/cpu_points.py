"""Host processors beside RTL: processes in the simulator's process."""

from lanikai.sim.experiments.measure.gm_hosts import start_gm
from lanikai.sim.host.cpu.clock_time import ClockTime
from lanikai.sim.host.cpu.host import Host
from lanikai.sim.host.cpu.requests import Signal
from lanikai.sim.host.cpu.round_robin import RoundRobin

from .cpu_workload import Workload, small_machine

PORT = 2
POLL_CYCLES = 50


async def workload(cluster, spec):
    """The random workload, from cycle `spec["begin"]` on."""
    clock = cluster.clock
    await clock.sleep(spec["begin"] - clock.cycle)
    work = Workload(ClockTime(clock, 1_000_000), spec["seed"], spec["scheduler"], steps=spec["steps"])
    while not work.over:
        await clock.sleep(1000)
    return work.seen()


async def message(cluster, spec):
    """A GM message from a process of host 0 to a process of host 1, beside `spec["others"]` processes that compute.

    Gives when the receiver's process saw it, and what each process of host 1 has used, cycles.
    """
    clock, hz = cluster.clock, cluster.config.nic.clock_hz
    libraries = start_gm(cluster)
    sender, receiver = [await libraries[node].open_port(PORT) for node in (0, 1)]
    source = await sender.dma_malloc(spec["bytes"])
    source.write(bytes(range(256)) * (spec["bytes"] // 256))
    await receiver.provide_receive_buffer(await receiver.dma_malloc(spec["bytes"]))
    time = ClockTime(clock, hz)
    hosts = [Host(time, small_machine(hz), RoundRobin(1), node=node) for node in (0, 1)]
    arrived, messages, seen = Signal(), [], {}

    async def listen():
        messages.append(await receiver.receive())
        arrived.set()

    async def send(process):
        await process.compute(100)
        await process.outside(sender.send(source, node=1, port=PORT))

    async def receive(process):
        assert await process.spin(arrived)
        seen["cycle"] = clock.cycle
        seen["right"] = bytes(messages[0].buffer.data[: messages[0].length]) == bytes(source.data)

    async def compute(process):
        await process.compute(spec["compute"])

    clock.spawn(listen(), "listen")
    begin = clock.cycle
    hosts[0].start(send, name="send")
    processes = [hosts[1].start(receive, name="receive")]
    processes += [hosts[1].start(compute, name=f"other {number}") for number in range(spec["others"])]
    while any(host.processes for host in hosts):
        await clock.sleep(1000)
    return seen | {
        "begin": begin,
        "used": [one.used for one in processes],
        "ended": [one.ended_at for one in processes],
    }
