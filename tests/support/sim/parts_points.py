"""The coroutines that the tests of composed designs run inside a simulation."""

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
