"""The coroutine that the test of measurements runs in the simulator: it counts until nothing is under way."""

from lanikai.sim.experiments.measure.traffic_results import measure
from lanikai.sim.inside import native_api

SETTLE_CYCLES = 2000


async def settled(system, spec):
    """Measure, let the network run empty, and read what the routers have sent since reset on each port."""
    found = await measure(system, spec)
    watch = system.watches[-1]
    await system.clock.sleep(SETTLE_CYCLES)
    found |= watch.found()
    routers = range(system.network.routers)
    ports = range(system.network.router.ports)
    words = [
        native_api.signal("counted_port_flits", f"{system.top}.network.router{r}").get() for r in routers
    ]
    return found | {"since_reset": [[word >> 32 * port & 0xFFFFFFFF for port in ports] for word in words]}
