"""The coroutines that the tests of composed designs run inside a simulation."""

from random import Random
from typing import Any

from lanikai.hdl.packet import Header, Kind, packet_words
from lanikai.hdl.traffic.ports import NODE, trace_address
from lanikai.hdl.traffic.setup import ClassSetup, trace_rows
from lanikai.sim.inside import native_api


async def measured(bench, spec):
    """Make a measurement. Returns its numbers, the last cycle, and the share of evaluations that were needed."""
    if spec["check"]:
        native_api.check_quiet()
    await bench.start_nodes()
    if spec["trace"]:
        rows = trace_rows(spec["trace"], packet_flits=8, interval_cycles=500, regulated=True)
        words = [
            (trace_address(row) + 4 * i, word) for row, pair in enumerate(rows) for i, word in enumerate(pair)
        ]
        await bench.write(
            ((node, address), word) for node in range(bench.config.traffic.nodes) for address, word in words
        )
    await bench.set_classes([ClassSetup(**one) for one in spec["classes"]])
    found = await bench.measure(warmup_cycles=500, window_cycles=3000, limit_cycles=20_000)
    await bench.clock.sleep(300)
    again = await bench.measure(warmup_cycles=0, window_cycles=500, limit_cycles=20_000)
    count, total = native_api.evaluated()
    return {
        "measured": [found.as_json(), again.as_json()],
        "cycle": bench.clock.cycle,
        "share": count / total if total else None,
    }


async def stuck(bench, spec):
    """Have sinks that give no credit back: the watchdog ends it."""
    await bench.start_nodes()
    hold = NODE["SINK"].pack(hold=1)
    await bench.write(((node, NODE["SINK"].offset), hold) for node in range(bench.config.traffic.nodes))
    await bench.set_classes([ClassSetup(**one) for one in spec["classes"]])
    await bench.measure(warmup_cycles=0, window_cycles=100_000, limit_cycles=1000)


async def agents(bench, spec):
    """Have every router's agent write tables and send control packets to the next router's agent, under load.

    Returns all that they read, when, and what the network measured meanwhile.
    """
    if spec["check"]:
        native_api.check_quiet()
    config, clock = bench.config, bench.clock
    router, routers = config.network.router, config.network.routers
    await bench.start_nodes()
    await bench.set_classes([ClassSetup(**one) for one in spec["classes"]])
    seen: dict[int, list[Any]] = {number: [] for number in range(routers)}
    done: list[int] = []
    # By a source route: out of this port, and then to port 0, which is the next router's agent's.
    places: dict[int, list[Any]] = {number: [] for number in range(routers)}
    for (here, out), (there, _) in sorted(config.network.neighbours.items()):
        places[here].append((out, there))

    async def work(number: int) -> None:
        port, chance = bench.agent(number), Random(f"{bench.seed} agent {number}")
        for turn in range(4):
            await clock.sleep(chance.randrange(200, 900))
            rows = [(vl, chance.randrange(1, 60)) for vl in range(router.data_vls)]
            await port.write_tables(high=rows[:1], low=rows, limit=chance.randrange(200))
            seen[number].append((clock.cycle, turn, await port.read("DROPPED"), await port.read("REFUSED")))
            if not router.management:
                continue
            out, there = chance.choice(places[number])
            header = Header(kind=Kind.PROBE, route=out, source=number, destination=there, sequence=turn)
            await port.send(packet_words(header, b"", router.link))
            for _ in range(40):
                await clock.sleep(chance.randrange(5, 60))
                if port.pending and (got := await port.receive()):
                    seen[number].append((clock.cycle, [f"{flit:x}" for flit in got]))
                    break
        done.append(number)

    for number in range(routers):
        clock.spawn(work(number), f"agent {number}")
    found = await bench.measure(warmup_cycles=500, window_cycles=6000, limit_cycles=20_000)
    while len(done) < routers:
        await clock.sleep(100)
    count, total = native_api.evaluated()
    return {
        "seen": seen,
        "measured": found.as_json(),
        "cycle": clock.cycle,
        "share": count / total if total else None,
    }


async def looked_into(bench, spec):
    """Look into instances by VPI and by address while traffic flows.

    Returns three things:

    - the values of `spec["signals"]` (scope below the top module, name) in cycles chosen at random;
    - the cycles of the first changes of `spec["events"]`;
    - what comes of a register that Python writes.
    """
    clock, dut = bench.clock, bench._dut
    await bench.start_nodes()
    await bench.set_classes([ClassSetup(**one) for one in spec["classes"]])

    def handle(scope: str, name: str) -> Any:
        found = dut
        for step in scope.split("."):
            found = getattr(found, step)
        return getattr(found, name)

    handles = [handle(*place) for place in spec["signals"]]
    signals = [native_api.signal(name, f"{dut._name}.{scope}") for scope, name in spec["signals"]]
    events: list[Any] = []

    async def first_change(place: Any) -> None:
        await clock.change(handle(*place))
        events.append([*place, clock.cycle])

    for place in spec["events"]:
        clock.spawn(first_change(place), place[1])
    ended: list[Any] = []

    async def measure() -> None:
        ended.append(await bench.measure(warmup_cycles=100, window_cycles=1500, limit_cycles=20_000))

    clock.spawn(measure(), "measure")
    samples: list[Any] = []
    while not ended:
        await clock.sleep(bench.random.randrange(3, 60))
        if bench.random.random() < 0.5:
            await clock.sample_phase()
        values = [one.get() for one in signals]
        assert values == [int(one.value) for one in handles]
        samples.append([clock.cycle, *values])
    # A register of an instance at rest, written by VPI and by its address, is seen by all that follow from it.
    await clock.sleep(500)
    handle("network.router1", "dropped").value = 5
    await clock.sleep(3)
    shown = [native_api.signal("dropped").get()]
    native_api.signal("dropped", f"{dut._name}.network.router0").set(3)
    await clock.sleep(3)
    shown.append(native_api.signal("dropped").get())
    return {"samples": samples, "events": events, "shown": shown, "measured": ended[0].as_json()}
