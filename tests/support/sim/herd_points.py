"""The coroutine that the tests of energy credits run inside a simulation of a network."""

from lanikai.hdl.traffic.setup import ClassSetup
from lanikai.sim.inside import native_api

SHOWN = ("power_used", "power_lent", "power_borrowed", "power_stalls")


async def credits(bench, spec):
    """Load the network, and then let it rest. Returns `SHOWN` of every router, in every cycle."""
    clock, network = bench.clock, bench.config.network
    await bench.start_nodes()
    await bench.set_classes([ClassSetup(**one) for one in spec["classes"]])
    signals = [
        [native_api.signal(name, f"{bench._top}.network.router{router}") for name in SHOWN]
        for router in range(network.routers)
    ]
    rows = []
    ended = []

    async def measure():
        ended.append(await bench.measure(warmup_cycles=0, window_cycles=spec["cycles"], limit_cycles=20_000))

    clock.spawn(measure(), "measure")
    rest = 0
    while rest < spec["rest_cycles"]:
        rest = rest + 1 if ended else 0
        rows.append([[signal.get() for signal in those] for those in signals])
        await clock.sleep(1)
    return {"rows": rows, "measured": ended[0].as_json()}
